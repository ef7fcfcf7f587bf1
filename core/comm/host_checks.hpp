// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "comm/plan.hpp"
#include "control/client.hpp"

namespace regatta::comm {

// Checks this rank's host, then the paths between all of them, then its devices; collective. The CPUs of up to 64 hosts
// work one after the other, of more in at most 64 turns. Hosts that are far slower than the others are measured up to
// plan::pairs.repeats more times, and the best rates count, because other load only lowers them. Returns
//   {"fma": FLOP/s, "copy": bytes/s, "cpu_share": of the best measurement, "throttled": s in which a CPU quota stopped
//    this process, "interface", "subnet", "mtu": of the rank's first address; null if unknown,
//    "from": [by rank: "small", "large": whether such a datagram came (comm/path_mtu.hpp); null: the rank itself],
//    "devices": check_devices() (comm/device_checks.hpp)}
// [main]
nlohmann::json check_host(control_client& control, const plan& p);

// Returns whether large packets from one rank to another one get lost although the MTU of both ends allows them: TCP
// stalls there. `hosts` are the results of check_host() of all ranks.
bool drops_large_packets(const std::vector<nlohmann::json>& hosts, std::uint32_t from, std::uint32_t to);

} // namespace regatta::comm
