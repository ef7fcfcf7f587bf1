// SPDX-License-Identifier: Apache-2.0
#include "cluster/peers.hpp"

#include <doctest/doctest.h>

#include "cluster/layout.hpp"

#include <regatta/plugin.hpp>

using namespace regatta;
using ranks = std::vector<std::uint32_t>;

TEST_CASE("the peers of a rank are those that the strategy lets it talk to, and for sums within a step all workers") {
  auto strategy = rg::make_versioned<rg_strategy>();
  const auto l = cluster_layout::make(3, 1, false);
  const rg_cluster all = l.view(UINT32_MAX);
  CHECK(peers_of(strategy, nullptr, all, 1, false) == ranks{0, 2, 3}); // without talks(): all
  strategy.talks = [](const rg_value*, const rg_cluster*, std::uint32_t a, std::uint32_t b) -> std::uint32_t {
    return a == 3 || b == 3; // workers talk to the server only
  };
  CHECK(talks(strategy, nullptr, all));
  CHECK(peers_of(strategy, nullptr, all, 1, false) == ranks{3});
  CHECK(peers_of(strategy, nullptr, all, 1, true) == ranks{0, 2, 3});
  CHECK(peers_of(strategy, nullptr, all, 3, true) == ranks{0, 1, 2});
}
