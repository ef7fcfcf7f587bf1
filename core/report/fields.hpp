// SPDX-License-Identifier: Apache-2.0
//
// What a result says of a case, by path, and how numbers are written in tables.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

// The value of `path` for an entry: a swept key ("train.batch"), else a member of the entry ("lost.wait"), else a key
// of the experiment ("strategy.plugin"). An object with a median stands for it. Null where there is none.
nlohmann::json field(const nlohmann::json& result, const nlohmann::json& entry, const std::string& path);

// Keys that differ between the entries' cases, in the order of the sweep.
std::vector<std::string> swept_keys(const nlohmann::json& result);

// Texts as they are, numbers with at most four significant digits, null as "-".
std::string plain_text(const nlohmann::json& value);
// A column of numbers with as many digits as its smallest needs; null as "-".
std::vector<std::string> aligned_numbers(const std::vector<nlohmann::json>& values);
std::string percent(double share); // 0.0114 -> "1.1 %"

} // namespace regatta
