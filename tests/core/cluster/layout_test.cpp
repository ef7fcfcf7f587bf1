// SPDX-License-Identifier: Apache-2.0
#include "cluster/layout.hpp"

#include <doctest/doctest.h>

#include "base/failure.hpp"
#include "cluster/plan.hpp"

#include <regatta/plugin.hpp>

using namespace regatta;
using ranks = std::vector<std::uint32_t>;

TEST_CASE("servers have ranks after the workers, or those of workers") {
  const auto apart = cluster_layout::make(3, 2, false);
  CHECK(apart.size() == 5);
  CHECK(apart.server_rank == ranks{3, 4});
  const auto with_workers = cluster_layout::make(3, 2, true);
  CHECK(with_workers.size() == 3);
  CHECK(with_workers.server_rank == ranks{0, 1});
  const auto more_servers = cluster_layout::make(2, 4, true);
  CHECK(more_servers.size() == 4);
  CHECK(more_servers.server_rank == ranks{0, 1, 2, 3});
}

TEST_CASE("workers, and servers of their own, are spread over hosts in blocks") {
  CHECK(cluster_layout::make(5, 2, false, 2).host_of == ranks{0, 0, 0, 1, 1, 0, 1});
  CHECK(cluster_layout::make(4, 4, true, 4).host_of == ranks{0, 1, 2, 3});
}

TEST_CASE("a rank sees its own roles") {
  const auto l = cluster_layout::make(2, 3, true);
  const rg_cluster both = l.view(1), server = l.view(2), nobody = l.view(UINT32_MAX);
  CHECK(both.worker == 1);
  CHECK(both.server == 1);
  CHECK(server.worker == -1);
  CHECK(server.server == 2);
  CHECK(nobody.worker == -1);
  CHECK(nobody.server == -1);
  CHECK(nobody.size == 3);
}

TEST_CASE("a strategy that computes momentum itself leaves plain SGD to the engine") {
  rg_plan plan{};
  optimizer_config config;
  config.plugin = "momentum";
  config.momentum = 0.9;
  CHECK(hand_over_momentum(plan, "s", config) == 0);
  CHECK(config.plugin == "momentum");
  plan.flags = RG_PLAN_MOMENTUM;
  CHECK(hand_over_momentum(plan, "s", config) == 0.9);
  CHECK(config.plugin == "sgd");
  config.plugin = "adam";
  CHECK_THROWS_AS(hand_over_momentum(plan, "s", config), failure);
}
