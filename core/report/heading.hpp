// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// Returns the values that hold for all cases, as at most four lines of items: one of the experiment; one of `constant`
// (of cases_table); one of settings that differ from their defaults; one of the machine, the program and the repeats.
// Leaves out lines without items.
std::vector<std::vector<std::string>> heading_of(const nlohmann::json& result,
                                                 const std::vector<std::string>& constant);

// Returns the warnings, each once: those of the campaign, then those of cases with the case or the number of cases.
std::vector<std::string> warnings_of(const nlohmann::json& result);
// Returns the items of the last line, as far as they apply: "1 of 4 cases failed" and the like, "replicas identical" or
// "REPLICAS DIFFER", "result checks passed" or "RESULT CHECKS FAILED" (check_results()).
std::vector<std::string> verdict_of(const nlohmann::json& result);

} // namespace regatta
