// SPDX-License-Identifier: Apache-2.0
//
// The ranks of a run: their roles and their hosts.
#pragma once

#include <cstdint>
#include <vector>

#include <regatta/abi.h>

namespace regatta {

// The ranks of a run and their roles; owns the arrays that rg_cluster points to.
struct cluster_layout {
  std::uint32_t workers = 1, servers = 0;
  std::vector<std::uint32_t> server_rank, host_of; // a rank by server, a host by rank; both count from 0

  // Ranks 0 .. workers-1 are workers. With `colocate`, server k < workers shares rank k with worker k; all other
  // servers have the ranks after the workers. Workers are spread over `hosts` hosts in contiguous blocks, and so are
  // the servers that have ranks of their own. Requires at least one worker and one host.
  static cluster_layout make(std::uint32_t workers, std::uint32_t servers, bool colocate, std::uint32_t hosts = 1);
  std::uint32_t size() const { return static_cast<std::uint32_t>(host_of.size()); }
  // Returns the cluster as `rank` sees it; UINT32_MAX gives a view of no rank, for plan() and talks(). Points into this
  // object.
  rg_cluster view(std::uint32_t rank) const;
};

} // namespace regatta
