// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "report/text_table.hpp"

namespace regatta {

// A table that [report] asks for.
struct pivot_table {
  std::string title; // "throughput [images/s, global]: batch 64"
  text_table table;
  // Of each cell, by row. Null for a key column, a published row, and a cell that is not one number.
  std::vector<std::vector<nlohmann::json>> values;
  std::size_t own_rows = 0;       // the first rows; those after them are published figures of others, marked as "[1]"
  std::vector<std::string> notes; // below the table: sources of published figures, a missing reference case of ratios
};

// Returns the tables of all [report] of the result: of each a table for every combination of the swept values that its
// rows, columns and cells do not show. A swept key counts as shown if its value follows from that of `rows`, `columns`
// or `list`, the key whose values stand side by side in a cell. A table whose `where` no case matches has a title and a
// note only; a result without cases has no tables, unless a [report] has `where`. Requires a valid document of schema
// regatta.result/1: others throw nlohmann::json::exception. Throws cell_error as report_requests() does.
std::vector<pivot_table> pivot_tables(const nlohmann::json& result);

} // namespace regatta
