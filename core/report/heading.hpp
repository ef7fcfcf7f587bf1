// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// Returns the values that hold for all cases, as lines of items: the experiment; `constant`; the machine, the program
// and the repeats.
std::vector<std::vector<std::string>> heading_of(const nlohmann::json& result,
                                                 const std::vector<std::string>& constant);

// Return the lines below the table: warnings with the cases that they concern, and the verdict on the results.
std::vector<std::string> warnings_of(const nlohmann::json& result);
std::vector<std::string> verdict_of(const nlohmann::json& result);

} // namespace regatta
