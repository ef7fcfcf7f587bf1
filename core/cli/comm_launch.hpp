// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "campaign/host_group.hpp"
#include "comm/plan.hpp"
#include "experiment/experiment.hpp"
#include "registry/registry.hpp"

namespace regatta {

struct comm_launch_options {
  std::string timeout = "auto", log = "warning"; // measure.timeout; the level up to which messages of ranks are shown
  bool pin = true;
  bool own_processes = false; // the launcher's processes themselves are the ranks
  bool one_per_host = false;  // with a launcher: rank r runs on host r, else it is, or is started by, process r
};

// How a run of `regatta comm` went.
struct comm_outcome {
  comm::plan plan;                     // as given, with the hosts, and without spinning if ranks share cores
  std::vector<std::string> hosts;      // names, by rank
  std::vector<nlohmann::json> results; // by rank
};

// Returns the plugin files that the transport needs, including those of nested transports. Throws failure if it is
// missing or cannot be created, or (usage) if parameters do not fit or it connects no ranks. Calls it in a child.
// [main]
std::vector<std::string> files_of_transport(const registry& plugins, const component_choice& choice);

// Runs the ranks of a plan, on this host or on the launcher's. `addresses` are those of each host. Adds a warning if
// ranks share cores. Throws failure if the run fails or the user interrupts it. [main]
comm_outcome launch_comm(comm::plan p, const comm_launch_options& o, host_group* launcher,
                         const std::vector<std::vector<std::string>>& addresses, std::vector<std::string>& warnings);

} // namespace regatta
