// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

#include <regatta/plugin.hpp>

namespace regatta {

// Returns a cluster of two workers and a server on one host, seen from none of its ranks: `rank` is UINT32_MAX,
// `worker` and `server` are -1. Commands without a run, such as `describe`, call a strategy's plan() and talks() with
// it.
inline rg_cluster sample_cluster() {
  static constexpr std::uint32_t server_rank[] = {2}, host_of[] = {0, 0, 0};
  auto cluster = rg::make_versioned<rg_cluster>();
  cluster.size = 3;
  cluster.workers = 2;
  cluster.servers = 1;
  cluster.server_rank = server_rank;
  cluster.host_of = host_of;
  cluster.rank = std::numeric_limits<std::uint32_t>::max();
  cluster.worker = cluster.server = -1;
  return cluster;
}

} // namespace regatta
