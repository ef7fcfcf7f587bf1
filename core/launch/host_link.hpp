// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "control/blob.hpp"
#include "launch/cpus.hpp"
#include "launch/host_clock.hpp"

namespace regatta {

// A host on which a launcher has started processes, and the connection to its agent (join/agent.hpp).
struct host_link {
  std::string name;                 // differs from that of all other hosts
  unique_fd socket;                 // authenticated; between runs nothing is under way. -1: the host was lost
  std::string lost;                 // why; empty: it was not
  blob secret;                      // of the launch, known to all its processes
  std::vector<std::uint32_t> slots; // numbers of the launcher's processes there, ascending
  cpu_supply cpus;                  // that ranks may use there
  std::uint64_t free_bytes = 0;     // available_bytes() (launch/memory.hpp) there, as the launch began
  host_clock clock;                 // of the host, against this process's, in the last run
};

} // namespace regatta
