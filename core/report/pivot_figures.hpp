// SPDX-License-Identifier: Apache-2.0
//
// The figures of cases and of published rows as texts, for the cells of a table that [report] asks for.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "report/quantity.hpp"
#include "report/report_request.hpp"

namespace regatta {

// A case in a table: its place, and a value for each figure of a cell.
struct placed_case {
  std::string row, column, item; // texts of the values of the keys; `item` is that of report_request::list
  std::vector<nlohmann::json> values;
  std::vector<quantity> units;
};

// Position of a figure's units: in the title if all values have one unit; in a column if each row has one; else in each
// cell.
enum class unit_place { title, row, cell };

// Appends a text unless it is there, so that texts keep the order of the sweep.
void add_new(std::vector<std::string>& to, const std::string& text);

// Returns the swept keys in which a case and the reference of its ratios must agree: all but those that have one value
// for each value of a key of `ratio_to`.
std::vector<std::string> fixed_keys_of(const nlohmann::json& result, const report_request& r);

// Returns the values of an entry for the figures of the request; null where it has none. A ratio is that to the case
// that has the values of `ratio_to` and agrees with the entry in `fixed_keys`: null if there is no such case, or
// several.
placed_case place_case(const nlohmann::json& result, const nlohmann::json& entry, const report_request& r,
                       const std::vector<std::string>& fixed_keys);

// Returns true if all entries with the same value of `by` have the same value of `key`.
bool determines(const nlohmann::json& result, const std::string& by, const std::string& key);

// Returns the distinct units of figure `f`: of all cases, or of one row.
std::vector<std::string> units_of(const std::vector<placed_case>& cases, std::size_t f,
                                  const std::string* row = nullptr);
unit_place place_of_units(const std::vector<placed_case>& cases, std::size_t f);

// Returns the cell of each case: "263.3 (78.6 %)"; "-" without any value. Plain numbers have the same number of
// decimals in all cases.
std::vector<std::string> cell_texts(const std::vector<placed_case>& cases, const report_request& r);

// Returns the cell of a published row in a column, "-" if it has none. A number has the digits with which it was
// published, unless the figure's format names decimals; a percentage without them has at most 4 digits. With
// published_row::ratio, ratios are computed from the numbers of the row and of its reference.
std::string published_text(const report_request& r, const published_row& row, const std::string& column);

// Returns what a cell shows, with units: "samples_per_second [samples/s, global], efficiency [%, global]".
std::string description_of(const std::vector<placed_case>& cases, const report_request& r);

} // namespace regatta
