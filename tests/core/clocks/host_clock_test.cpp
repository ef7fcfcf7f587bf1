// SPDX-License-Identifier: Apache-2.0
//
// Exchanges between two clocks whose true offset is known. Times in ns.
#include <cmath>
#include <random>

#include <doctest/doctest.h>

#include "clocks/host_clock.hpp"

using namespace regatta;
using doctest::Approx;

namespace {

constexpr std::int64_t us = 1000, s = 1'000'000'000;

// An exchange that begins at `at`, with these times on the way; the other clock is `ahead`.
void exchange(host_clock& clock, std::int64_t at, std::int64_t there, std::int64_t back, double ahead) {
  clock.add(at, at + there + back, at + there + std::llround(ahead));
}

bool contains(const clock_estimate& e, double truth) {
  return std::abs(e.ahead_ns - truth) <= e.uncertainty_ns + 1;
}

} // namespace

TEST_CASE("one exchange knows the offset to half of its round trip") {
  host_clock clock;
  CHECK_FALSE(clock.at(0));
  CHECK(clock.course().points.empty());
  exchange(clock, 1000 * us, 10 * us, 30 * us, 5e12);
  const auto e = clock.at(1020 * us);
  REQUIRE(e);
  CHECK(e->uncertainty_ns == Approx(20 * us));
  CHECK(e->ahead_ns == Approx(5e12 - 10 * us).epsilon(1e-15)); // the way back took 20 us longer
  CHECK(contains(*e, 5e12));
  CHECK(clock.at(1 * s)->uncertainty_ns == Approx(20 * us + 1e-4 * (s - 1020 * us)));
  REQUIRE(clock.course().points.size() == 1);
  CHECK(clock.course().points[0].at == 1020 * us + std::llround(e->ahead_ns));
}

TEST_CASE("exchanges that are slow in opposite directions bound the offset from both sides") {
  host_clock clock;
  exchange(clock, 0, 5 * us, 500 * us, 1000);
  exchange(clock, 1000 * us, 500 * us, 5 * us, 1000);
  const auto e = clock.at(600 * us);
  CHECK(e->uncertainty_ns < 6 * us);
  CHECK(contains(*e, 1000));
}

TEST_CASE("an answer that came before its question is ignored") {
  host_clock clock;
  clock.add(100, 50, 75);
  CHECK_FALSE(clock.at(0));
}

TEST_CASE("the course contains the true offset of a drifting clock at all times of a long run") {
  constexpr double drift = 8e-5;
  std::mt19937 random(1);
  host_clock clock;
  const auto truth = [&](std::int64_t at) { return -7e9 + drift * static_cast<double>(at); };
  for (std::int64_t at = s; at < 601 * s; at += s / 2) {
    // Processes that compute delay most exchanges, by up to 4 ms.
    const auto delay = [&] { return 20 * us + static_cast<std::int64_t>(random() % 40) * 100 * us; };
    const std::int64_t there = delay();
    exchange(clock, at, there, delay(), truth(at + there));
  }
  const clock_course course = clock.course();
  CHECK(course.points.size() == 64); // 1200 exchanges were thinned out
  for (std::int64_t at = 2 * s; at < 600 * s; at += s / 3) {
    const std::int64_t on_its_clock = at + std::llround(truth(at));
    const clock_estimate e = course.at(on_its_clock);
    REQUIRE(contains(e, truth(at)));
    REQUIRE(e.uncertainty_ns < 2000 * us);
    REQUIRE(std::abs(course.to_reference(on_its_clock) - at) <= e.uncertainty_ns + 1);
  }
}

TEST_CASE("exchanges that contradict each other make the offset less certain") {
  host_clock clock;
  exchange(clock, 0, 10 * us, 10 * us, 0);
  exchange(clock, 100 * us, 10 * us, 10 * us, 1000.0 * us); // the clock jumped
  const auto e = clock.at(60 * us);
  CHECK(contains(*e, 0));
  CHECK(contains(*e, 1000.0 * us));
}

TEST_CASE("a new run begins without the exchanges of the last one") {
  host_clock clock;
  exchange(clock, 0, 10 * us, 10 * us, 5);
  clock.clear();
  CHECK_FALSE(clock.at(0));
}
