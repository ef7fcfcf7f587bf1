// SPDX-License-Identifier: Apache-2.0
//
// Reports the interconnect between the devices of this host.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>
#include <regatta/ext/device.h>

namespace regatta {

// [main] Returns a matrix as an array of rows. Row a, column b: the connection from device a to device b in the words
// of `nvidia-smi topo -m`, "NV18" or "SYS"; on the diagonal: the nearest part of the host ("CPUs 0-31, NUMA node 0").
// Unknown entries are null. Returns null if nothing is known or there is no device. `devices` is the extension of the
// executor `name` ("executor cudnn"). Its errors count as unknown, and are not reported.
nlohmann::json topology_of(const rg_devices& devices, const std::string& name);

} // namespace regatta
