// SPDX-License-Identifier: Apache-2.0
//
// Finds the values of a case by path, and formats numbers for tables.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

// Returns the value of `path` for an entry: a swept key ("train.batch"), else a member of the entry ("lost.wait"), else
// a key of the experiment ("strategy.plugin"). For an object with a median, returns the median. Null if there is none.
nlohmann::json field(const nlohmann::json& result, const nlohmann::json& entry, const std::string& path);

// Returns the keys that differ between the entries' cases, in the order of the sweep.
std::vector<std::string> swept_keys(const nlohmann::json& result);

// Returns texts unchanged, numbers with at most four significant digits, null as "-".
std::string plain_text(const nlohmann::json& value);
// Returns a column of numbers with as many digits as the smallest needs; null as "-".
std::vector<std::string> aligned_numbers(const std::vector<nlohmann::json>& values);
std::string percent(double share); // 0.0114 -> "1.1 %"

} // namespace regatta
