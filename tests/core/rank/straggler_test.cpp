// SPDX-License-Identifier: Apache-2.0
#include "rank/straggler.hpp"

#include <vector>

#include <doctest/doctest.h>

using namespace regatta;

namespace {

// A clock that moves only by work and sleep, with sleeps that take `late` longer than asked.
struct late_clock {
  static inline std::int64_t time = 0, late = 0;
  static inline std::vector<std::int64_t> sleeps;
  static std::int64_t now() noexcept { return time; }
  static void sleep(std::int64_t ns) {
    sleeps.push_back(ns);
    time += ns + late;
  }
  static void reset(std::int64_t how_late) {
    time = 0;
    late = how_late;
    sleeps.clear();
  }
};

// Returns how much longer 1000 steps took, each with a forward and a backward pass of 1 ms.
double slowdown(double factor, std::int64_t late) {
  late_clock::reset(late);
  basic_straggler<late_clock> s(factor);
  const std::int64_t work = 1'000'000;
  for (int step = 0; step < 1000; ++step)
    for (int pass = 0; pass < 2; ++pass) {
      s.resume();
      late_clock::time += work;
      s.compute(true);
    }
  return static_cast<double>(late_clock::time) / (2000.0 * static_cast<double>(work));
}

} // namespace

TEST_CASE("a straggler is as slow as asked though the kernel ends its sleeps late") {
  CHECK(slowdown(2, 0) == doctest::Approx(2));
  CHECK(slowdown(1.03, 0) == doctest::Approx(1.03));
  // A sleep of 30 us that takes 110 us in truth stands for those of the next passes, too.
  CHECK(slowdown(1.03, 80'000) == doctest::Approx(1.03).epsilon(0.001));
  CHECK(slowdown(1.5, 80'000) == doctest::Approx(1.5).epsilon(0.001));
}

TEST_CASE("a factor of 1 never sleeps, and short sleeps within a pass are put off") {
  CHECK(slowdown(1, 0) == 1);
  CHECK(late_clock::sleeps.empty());
  late_clock::reset(0);
  basic_straggler<late_clock> s(1.1);
  s.resume();
  late_clock::time += 1'000'000;
  s.compute(false);
  CHECK(late_clock::sleeps.empty());
  late_clock::time += 1'000'000;
  s.compute(true);
  REQUIRE(late_clock::sleeps.size() == 1);
  CHECK(late_clock::sleeps[0] == doctest::Approx(200'000).epsilon(1e-6));
}
