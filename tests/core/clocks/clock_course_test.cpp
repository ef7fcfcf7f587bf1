// SPDX-License-Identifier: Apache-2.0
#include <fstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/cpu_mask.hpp"
#include "base/failure.hpp"
#include "clocks/clock_course.hpp"
#include "temporary_folder.hpp"

using namespace regatta;
using doctest::Approx;

TEST_CASE("a host without points has the reference clock") {
  CHECK(clock_course{}.at(1000).ahead_ns == 0);
  CHECK(clock_course{}.at(1000).uncertainty_ns == 0);
  CHECK(clock_course{}.to_reference(1234) == 1234);
}

TEST_CASE("between two points the offset is linear, and the drift widens its bounds") {
  const clock_course course{{{1'000'000, {5000, 10}}, {3'000'000, {5100, 30}}}};
  CHECK(course.at(2'000'000).ahead_ns == Approx(5050));
  CHECK(course.at(2'000'000).uncertainty_ns == Approx(20 + 1e-4 * 1'000'000)); // 2 * 1e6 * 1e6 / 2e6
  CHECK(course.at(1'000'000).uncertainty_ns == Approx(10));
  CHECK(course.at(3'000'000).uncertainty_ns == Approx(30));
  CHECK(course.to_reference(3'000'000) == 2'994'900);
}

TEST_CASE("outside of its points a clock keeps the offset of the nearest one, less and less certainly") {
  const clock_course course{{{1'000'000, {-5000, 10}}, {3'000'000, {-5100, 30}}}};
  CHECK(course.at(0).ahead_ns == -5000);
  CHECK(course.at(0).uncertainty_ns == Approx(10 + 100));
  CHECK(course.at(5'000'000).ahead_ns == -5100);
  CHECK(course.at(5'000'000).uncertainty_ns == Approx(30 + 200));
}

TEST_CASE("a host's course survives JSON, and a damaged one is refused") {
  const timed_host host{"n1", {{{4'000'000'000'000, {5e12, 25.5}}, {4'000'500'000'000, {5e12 + 7, 24}}}}};
  nlohmann::json j = to_json(host);
  const timed_host read = timed_host_from_json(nlohmann::json::parse(j.dump()));
  CHECK(read.name == "n1");
  REQUIRE(read.clock.points.size() == 2);
  CHECK(read.clock.points[0].at == 4'000'000'000'000);
  CHECK(read.clock.points[0].is.ahead_ns == 5e12);
  CHECK(read.clock.points[1].is.uncertainty_ns == 24);
  j["clock"][1] = {1, "x", 2};
  CHECK_THROWS_AS(timed_host_from_json(j), failure);
  CHECK_THROWS_AS(timed_host_from_json({{"name", "n1"}}), failure);
}

TEST_CASE("the NUMA node of CPUs is known only if all are on one") {
  const test::temporary_folder folder;
  for (const auto& [node, cpu] : {std::pair{0, 0}, {0, 1}, {10, 2}}) {
    const auto place = folder.path / ("node" + std::to_string(node));
    std::filesystem::create_directories(place);
    std::ofstream(place / ("cpu" + std::to_string(cpu)));
  }
  CHECK(numa_node_of({0, 1}, folder.path) == 0);
  CHECK(numa_node_of({2}, folder.path) == 10);
  CHECK_FALSE(numa_node_of({1, 2}, folder.path));
  CHECK_FALSE(numa_node_of({3}, folder.path));
  CHECK_FALSE(numa_node_of({}, folder.path));
  CHECK_FALSE(numa_node_of({0}, folder.path / "none"));
}
