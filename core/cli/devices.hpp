// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "registry/registry.hpp"

#include <nlohmann/json.hpp>

namespace regatta {

// What an executor with component::has_devices says of the devices here, asked in a child: `executor`, `devices` (a line
// each), `topology` (null: unknown) and `error` (null, or why nothing is known). [main]
nlohmann::ordered_json devices_of(const registry& plugins, const component& executor);

} // namespace regatta
