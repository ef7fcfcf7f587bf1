// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

namespace regatta {

// Runs `regatta doctor`: prints this machine, its limits, the plugins, the devices that they report, parts that this
// build leaves out, and the network. Returns 0, or 3 if a file in `folders` is in registry::failures(); the report is
// complete in both cases. An executor that fails to list its devices is reported, but does not change the result.
// Throws failure (plugin) if a folder cannot be read. Keeps two CPUs busy for about 100 ms. [main]
int doctor_verb(const std::vector<std::filesystem::path>& folders, bool as_json);

} // namespace regatta
