// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "comm/preflight.hpp"
#include "comm/preflight_links.hpp"

namespace regatta::comm {

// Returns the hosts whose devices (check_devices() in `results`, by rank) stand out; a rank is a host. A host is named
//  - for "gpu", with the reason, if a device cannot be timed; also if none can although its driver lists GPUs
//  - for "gpu_compute" or "gpu_memory" if a device is too slow (comm/outliers.hpp) among all of its kind and name. If
//    two hosts have such devices, one of them each, or if medians over their devices are compared because no single
//    device is too slow, both hosts are named.
std::vector<finding> findings_of_devices(const std::vector<host_facts>& facts,
                                         const std::vector<nlohmann::json>& results);

} // namespace regatta::comm
