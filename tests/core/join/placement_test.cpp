// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <vector>

#include "join/placement.hpp"

using namespace regatta;

namespace {

using numbers = std::vector<std::uint32_t>;
using hosts = std::vector<numbers>;

const hosts two_by_two = {{0, 1}, {2, 3}};
const hosts three_by_two = {{0, 1}, {2, 3}, {4, 5}};

} // namespace

TEST_CASE("block fills one host after the other, round_robin gives each one rank in turn") {
  const auto layout = cluster_layout::make(4, 0, false);
  const auto block = place_ranks(two_by_two, layout, "block", 0).value();
  CHECK(block.host == numbers{0, 0, 1, 1});
  CHECK(block.slot == numbers{0, 1, 2, 3});
  const auto dealt = place_ranks(two_by_two, layout, "round_robin", 0).value();
  CHECK(dealt.host == numbers{0, 1, 0, 1});
  CHECK(dealt.slot == numbers{0, 2, 1, 3});
}

TEST_CASE("hosts with different numbers of processes") {
  const hosts unequal = {{0}, {1, 2, 3}};
  const auto layout = cluster_layout::make(4, 0, false);
  CHECK(place_ranks(unequal, layout, "block", 0).value().host == numbers{0, 1, 1, 1});
  CHECK(place_ranks(unequal, layout, "round_robin", 0).value().slot == numbers{0, 1, 2, 3});
}

TEST_CASE("servers come after the workers, or on hosts of their own") {
  const auto layout = cluster_layout::make(2, 2, false);
  CHECK(place_ranks(three_by_two, layout, "block", 0).value().host == numbers{0, 0, 1, 1});
  const auto apart = place_ranks(three_by_two, layout, "block", 1).value();
  CHECK(apart.host == numbers{0, 0, 2, 2});
  CHECK(apart.slot == numbers{0, 1, 4, 5});
  CHECK(place_ranks(three_by_two, layout, "round_robin", 1).value().host == numbers{0, 1, 2, 2});
  // Servers within the workers' processes need no hosts.
  CHECK(place_ranks(three_by_two, cluster_layout::make(2, 2, true), "block", 1).value().host == numbers{0, 0});
}

TEST_CASE("too few processes") {
  CHECK(!place_ranks(two_by_two, cluster_layout::make(5, 0, false), "block", 0));
  CHECK(!place_ranks(two_by_two, cluster_layout::make(3, 1, false), "block", 1)); // two workers' processes for three
  CHECK(!place_ranks(two_by_two, cluster_layout::make(1, 3, false), "block", 1));
}

TEST_CASE("a layout's hosts are counted from 0 in the order of their first rank") {
  auto layout = cluster_layout::make(3, 0, false);
  set_hosts(layout, {{4, 2, 4}, {0, 1, 2}});
  CHECK(layout.host_of == numbers{0, 1, 0});
}

TEST_CASE("a layout takes the launcher's hosts, and its processes as ranks for a transport that needs them") {
  const cluster_layout layout = cluster_layout::make(3, 0, false);
  const placed_layout own = place_layout("mpirun", {{0, 2}, {1, 3}}, layout, {}, true);
  CHECK(own.lacking.empty());
  CHECK(own.places.host == numbers{0, 1, 0});
  CHECK(own.places.slot == numbers{0, 1, 2});
  CHECK(own.layout.host_of == numbers{0, 1, 0});

  const placed_layout in_blocks = place_layout("mpirun", {{0, 2}, {1, 3}}, layout, {}, false);
  CHECK(in_blocks.places.slot == numbers{0, 2, 1});
  CHECK(in_blocks.layout.host_of == numbers{0, 0, 1});
}

TEST_CASE("a layout that the launcher's processes do not suffice for says so") {
  const cluster_layout layout = cluster_layout::make(3, 0, false);
  for (const bool own_processes : {false, true}) {
    const placed_layout p = place_layout("srun", {{0}, {1}}, layout, {}, own_processes);
    CHECK(p.lacking == "needs 3 ranks, and srun has started 2 processes on 2 hosts");
    CHECK(p.places.host.empty());
  }
}

TEST_CASE("hosts are imitated on one host only") {
  const cluster_layout layout = cluster_layout::make(2, 0, false, 2);
  cluster_config c;
  c.hosts = 2;
  CHECK(place_layout("srun", {{0, 1}}, layout, c, false).layout.host_of == numbers{0, 1});
  CHECK_THROWS_WITH_AS(place_layout("srun", {{0}, {1}}, layout, c, false), doctest::Contains("leave it out, got 2"),
                       failure);
}
