// SPDX-License-Identifier: Apache-2.0
#include "cluster/peers.hpp"

#include <algorithm>

namespace regatta {

bool talks(const rg_strategy& strategy, const rg_value* values, const rg_cluster& all) {
  for (std::uint32_t a = 0; a < all.size; ++a)
    for (std::uint32_t b = a + 1; b < all.size; ++b)
      if (!strategy.talks || strategy.talks(values, &all, a, b)) return true;
  return false;
}

std::vector<std::uint32_t> peers_of(const rg_strategy& strategy, const rg_value* values, const rg_cluster& all,
                                    std::uint32_t rank, bool all_workers) {
  std::vector<std::uint32_t> peers;
  for (std::uint32_t peer = 0; peer < all.size; ++peer)
    if (const auto [a, b] = std::minmax(rank, peer);
        a != b && (!strategy.talks || (all_workers && b < all.workers) || strategy.talks(values, &all, a, b)))
      peers.push_back(peer);
  return peers;
}

} // namespace regatta
