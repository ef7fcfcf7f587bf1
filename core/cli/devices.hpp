// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "registry/registry.hpp"

#include <nlohmann/json.hpp>

namespace regatta {

// [main] Asks an executor, in a forked child, about the devices of this machine. Returns an object: `executor` (its
// id), `devices` (a line of text for each), `topology` and `error` (null, or the text of a failure; then no device is
// listed). `topology` is null if it is unknown, else an array of rows: in row a, column b, the connection from device a
// to device b in the words of `nvidia-smi topo -m`, such as "NV18" or "SYS"; on the diagonal the nearest part of the
// host ("CPUs 0-31, NUMA node 0"); null for an unknown entry. Does not throw for failures of the plugin or the child.
// Requires that this process has no other threads. An executor without component::has_devices lists no devices.
nlohmann::ordered_json devices_of(const registry& plugins, const component& executor);

} // namespace regatta
