// SPDX-License-Identifier: Apache-2.0
//
// Which host of a launch runs which rank.
#pragma once

#include "cluster/layout.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace regatta {

struct placement {
  std::vector<std::uint32_t> host, slot; // by rank: index of its host, and the launched process there
};

// Places the ranks of a layout on hosts, of which each has the launched processes `slots`, ascending. With "block" the
// ranks fill one host after the other; with "round_robin" each host takes one rank in turn. `server_hosts` > 0: that
// many hosts, the last ones, run only servers that have a rank of their own, and the others only workers. Returns
// std::nullopt if there are fewer processes than ranks.
std::optional<placement> place_ranks(const std::vector<std::vector<std::uint32_t>>& slots, const cluster_layout& layout,
                                     const std::string& place, std::uint32_t server_hosts);

// Replaces the layout's hosts by those of the placement, counted from 0 in the order of their first rank.
void set_hosts(cluster_layout& layout, const placement& p);

} // namespace regatta
