// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

namespace regatta {

// `regatta doctor`: this machine, its limits, the plugins found and what they say of the devices here, what this build
// was made without, the network. Exit code 3 where a plugin cannot be used.
int doctor_verb(const std::vector<std::filesystem::path>& folders, bool as_json);

} // namespace regatta
