// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "registry/registry.hpp"

#include <nlohmann/json.hpp>

namespace regatta {

// [main] Asks an executor, in a forked child, about the devices of this machine. Returns an object: `executor` (its
// id), `devices` (a line of text for each), `topology` (as topology_of(); null: unknown) and `error` (null, or the text
// of a failure; then no device is listed). Does not throw for failures of the plugin or the child. Requires that this
// process has no other threads. An executor without component::has_devices lists no devices.
nlohmann::ordered_json devices_of(const registry& plugins, const component& executor);

} // namespace regatta
