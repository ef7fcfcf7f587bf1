// SPDX-License-Identifier: Apache-2.0
//
// Finds the values of a case by path, and formats numbers for tables. `result` is a document of schema
// regatta.result/1, `entry` an element of its "results".
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

// Returns whether the status of an entry is "ok" or "partial": it has the figures of at least one repeat.
bool has_figures(const nlohmann::json& entry);

// Returns the value of `path` for an entry: a swept key ("train.batch"), else a member of the entry ("lost.wait"), else
// a key of the experiment ("strategy.plugin"). Of a figure with repeats, which is an object, returns its member
// "median". JSON's null if there is no such value.
nlohmann::json field(const nlohmann::json& result, const nlohmann::json& entry, const std::string& path);

// Returns the swept keys whose values differ between the entries, in the order of the sweep.
std::vector<std::string> swept_keys(const nlohmann::json& result);

// Returns a value as text in one line: floats with four significant digits, from 1000 to below 1e15 rounded to
// integers; null as "-"; anything else in full, as JSON except for strings.
std::string plain_text(const nlohmann::json& value);
// Returns the values as texts. All numbers get the same number of decimals. It depends on the smallest absolute value
// other than 0: 0 decimals from 1000 on, 1 from 10, 2 from 1, 3 from 0.1, and 4 from 0.001. If that value is below
// 0.001, all numbers are formatted as by plain_text(). Values that are not numbers always are.
std::vector<std::string> aligned_numbers(const std::vector<nlohmann::json>& values);
std::string percent(double share); // 0.0114 -> "1.1 %"

} // namespace regatta
