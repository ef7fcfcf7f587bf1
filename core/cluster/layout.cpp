// SPDX-License-Identifier: Apache-2.0
#include "cluster/layout.hpp"

#include <algorithm>

#include <regatta/plugin.hpp>

namespace regatta {

cluster_layout cluster_layout::make(std::uint32_t workers, std::uint32_t servers, bool colocate, std::uint32_t hosts) {
  cluster_layout l;
  l.workers = workers;
  l.servers = servers;
  std::uint32_t size = workers;
  for (std::uint32_t s = 0; s < servers; ++s) l.server_rank.push_back(colocate && s < workers ? s : size++);
  for (std::uint64_t w = 0; w < workers; ++w) l.host_of.push_back(static_cast<std::uint32_t>(w * hosts / workers));
  for (std::uint64_t s = 0, alone = size - workers; s < alone; ++s)
    l.host_of.push_back(static_cast<std::uint32_t>(s * hosts / alone));
  return l;
}

rg_cluster cluster_layout::view(std::uint32_t rank) const {
  auto c = rg::make_versioned<rg_cluster>();
  c.size = size();
  c.workers = workers;
  c.servers = servers;
  c.server_rank = server_rank.data();
  c.host_of = host_of.data();
  c.rank = rank;
  c.worker = rank < workers ? static_cast<std::int32_t>(rank) : -1;
  const auto s = std::find(server_rank.begin(), server_rank.end(), rank);
  c.server = s == server_rank.end() ? -1 : static_cast<std::int32_t>(s - server_rank.begin());
  return c;
}

} // namespace regatta
