// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

#include <regatta/plugin.hpp>

namespace regatta {

// Two workers and a server on one host, as seen from outside (no rank is this process): a strategy plans for it if
// there is no run.
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
