// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cluster/placement.hpp"
#include "experiment/experiment.hpp"
#include "launch/host_group.hpp"
#include "registry/registry.hpp"

namespace regatta {

// The ranks of a case, and where they run.
struct placed_layout {
  cluster_layout layout; // the roles of the ranks, and the host of each as strategy and transport see it
  placement places;      // the launcher's host and process of each rank; empty without a launcher
  std::string lacking;   // why the launcher's processes do not suffice for the ranks; empty: they do
};

// Returns the layout of a case with `servers` servers. `hosts` are those of the launcher; null: there is no launcher.
// With several hosts of a launcher, ranks are placed on them by cluster.place and cluster.server_hosts. Else all ranks
// run on this host, and strategy and transport see cluster.hosts hosts. With a transport that needs the launcher's own
// processes, rank r is process r. Throws failure (usage) if cluster.hosts does not fit the launcher's hosts.
placed_layout place_case(const registry& plugins, const case_config& c, std::uint32_t servers, const host_group* hosts);

} // namespace regatta
