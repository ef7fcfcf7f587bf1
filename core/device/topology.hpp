// SPDX-License-Identifier: Apache-2.0
//
// Reports the interconnect between the devices of this host.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>
#include <regatta/device.h>

namespace regatta {

// [main] Returns a matrix. Row a, column b: the connection from device a to device b, "NV18" or "SYS"; on the diagonal:
// the nearest part of the host ("CPUs 0-31, NUMA node 0"). Unknown entries are null. The result is null if nothing is
// known or there is no device. `name` is the executor's name in errors.
nlohmann::json topology_of(const rg_devices& devices, const std::string& name);

} // namespace regatta
