// SPDX-License-Identifier: Apache-2.0
//
// How the devices of this host reach each other.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>
#include <regatta/device.h>

namespace regatta {

// Row a, column b: how device a reaches device b, "NV18" or "SYS"; in the diagonal what of the host is near ("CPUs 0-31,
// NUMA node 0"). What is not known is null, and so is the whole where nothing is, or there is no device. `name` is the
// executor's. [main]
nlohmann::json topology_of(const rg_devices& devices, const std::string& name);

} // namespace regatta
