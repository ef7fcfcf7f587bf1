// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "registry/registry.hpp"

#include <nlohmann/json.hpp>

namespace regatta {

// Asks an executor, in a child, about the devices of this machine. Returns `executor`, `devices` (a line each),
// `topology` (null: unknown) and `error` (null, or why nothing is known). Requires component::has_devices. [main]
nlohmann::ordered_json devices_of(const registry& plugins, const component& executor);

} // namespace regatta
