// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// What holds for all cases, as lines of items: the experiment; what `constant` adds; the machine and how it was
// measured.
std::vector<std::vector<std::string>> heading_of(const nlohmann::json& result,
                                                 const std::vector<std::string>& constant);

// Below the table: what spoils the figures, whose case it was, and whether results are right.
std::vector<std::string> warnings_of(const nlohmann::json& result);
std::vector<std::string> verdict_of(const nlohmann::json& result);

} // namespace regatta
