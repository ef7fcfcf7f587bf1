// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace regatta {

// `regatta describe KIND/ID`: prints its parameters (type, default, what is allowed, what for) and what it can do: of a
// graph its layers, parameters and operations; of a transport its capabilities; of an executor where it runs; of a
// strategy what it plans for two workers and a server. `set` changes parameters for that, "name=value" each; values
// parse as JSON, else as strings. Returns 0; throws failure (2: no such kind, wrong value; 3: no such component).
// [main]
int describe_verb(const std::vector<std::filesystem::path>& folders, const std::string& component, bool json,
                  const std::vector<std::string>& set = {});

} // namespace regatta
