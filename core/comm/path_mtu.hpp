// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "control/client.hpp"

namespace regatta::comm {

// UDP datagrams that must not be fragmented, as they arrived from another rank.
struct arrivals {
  // One of 64 bytes (IPv6: 84), headers included; one that fills the MTU of the sender's interface, up to 65 kB.
  bool small = false, large = false;
};

// Sends datagrams of both sizes to all other ranks, three times, and returns what came, by rank: so a path that drops
// large packets without a word is told from one that drops all UDP. Collective; takes about 0.3 s. `address` is this
// rank's, `mtu` that of its interface; with 0 it sends no large ones. All are false for this rank itself, and if this
// host has no such socket. Throws failure (run) if the case ends. [main]
std::vector<arrivals> probe_paths(control_client& control, const std::string& address, std::uint32_t mtu);

} // namespace regatta::comm
