// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

namespace regatta {

// Runs `regatta doctor`: prints this machine, its limits, the plugins, the devices that they report, parts that this
// build leaves out, and the network. Returns 3 if a plugin cannot be used.
int doctor_verb(const std::vector<std::filesystem::path>& folders, bool as_json);

} // namespace regatta
