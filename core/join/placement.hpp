// SPDX-License-Identifier: Apache-2.0
//
// Places ranks on the hosts of a launch.
#pragma once

#include "campaign/host_group.hpp"
#include "cluster/layout.hpp"
#include "experiment/experiment.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace regatta {

// Places the ranks of a layout on hosts, of which each has the launched processes `slots`, ascending. With "block" the
// ranks fill one host after the other; with "round_robin" each host takes one rank in turn. `server_hosts` > 0: that
// many hosts, the last ones (but never all), run only servers that have a rank of their own, and the others only
// workers; without such servers it does not count. Returns std::nullopt if there are fewer processes than ranks.
std::optional<placement> place_ranks(const std::vector<std::vector<std::uint32_t>>& slots, const cluster_layout& layout,
                                     const std::string& place, std::uint32_t server_hosts);

// host_group::place() for the hosts of `launcher`, of which each has the launched processes `slots`.
placed_layout place_layout(const std::string& launcher, const std::vector<std::vector<std::uint32_t>>& slots,
                           const cluster_layout& layout, const cluster_config& c, bool own_processes);

// Replaces the layout's hosts by those of the placement, counted from 0 in the order of their first rank.
void set_hosts(cluster_layout& layout, const placement& p);

} // namespace regatta
