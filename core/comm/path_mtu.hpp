// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "control/client.hpp"

namespace regatta::comm {

// UDP datagrams that must not be fragmented, as they arrived from another rank.
struct arrivals {
  bool small = false, large = false; // one of 64 bytes; one that fills the MTU of the sender's interface
};

// Sends datagrams of both sizes to all other ranks, three times, and returns what came from each rank: so a path that
// drops large packets without a word is told from one that drops all UDP. Collective; takes about 0.3 s. `mtu` is that of
// this rank's interface. All are false if this host has no such socket. [main]
std::vector<arrivals> probe_paths(control_client& control, const std::string& address, std::uint32_t mtu);

} // namespace regatta::comm
