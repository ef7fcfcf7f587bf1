// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "registry/registry.hpp"

#include <nlohmann/json.hpp>

namespace regatta {

// Asks an executor, in a child process, about the devices of this machine. Returns an object: `executor` (its id),
// `devices` (a line of text for each), `topology` (null: unknown) and `error` (null, or the failure of the plugin; then
// no device is listed). Does not throw for failures of the plugin. Requires component::has_devices. [main]
nlohmann::ordered_json devices_of(const registry& plugins, const component& executor);

} // namespace regatta
