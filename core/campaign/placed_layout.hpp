// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cluster/placement.hpp"
#include "experiment/experiment.hpp"
#include "launch/host_group.hpp"
#include "registry/registry.hpp"

namespace regatta {

struct placed_layout {
  cluster_layout layout;
  placement places;    // empty without a launcher
  std::string lacking; // why the launcher's processes do not suffice for the ranks; empty: they do
};

// Returns the layout of a case with `servers` servers. Without a launcher (`hosts` is null), and with one on a single
// host, cluster.hosts says how many hosts strategy and transport are told of; else they are told of the launcher's
// hosts, by cluster.place and cluster.server_hosts. A transport that needs the launcher's own processes has rank r in
// process r. Throws failure (usage) if cluster.hosts does not fit the launcher's hosts.
placed_layout place_case(const registry& plugins, const case_config& c, std::uint32_t servers, const host_group* hosts);

} // namespace regatta
