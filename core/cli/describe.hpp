// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace regatta {

// Runs `regatta describe KIND/ID`: prints the parameters (type, default, allowed values, help) and the capabilities.
// For a graph these are layers, parameters and operations; for an executor, where it runs; for a strategy, its plan for
// two workers and a server. `set` ("name=value") changes parameters of that instance; values are parsed as JSON, else
// taken as strings. Returns 0. Throws failure (2: unknown kind or wrong value; 3: no such component). [main]
int describe_verb(const std::vector<std::filesystem::path>& folders, const std::string& component, bool json,
                  const std::vector<std::string>& set = {});

} // namespace regatta
