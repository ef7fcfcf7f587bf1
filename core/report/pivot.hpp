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
  std::vector<std::vector<nlohmann::json>> values; // of each cell, by row; null for a cell that is not one number
  std::size_t own_rows = 0;       // the first rows; those after them are published figures of others, marked as "[1]"
  std::vector<std::string> notes; // below the table: the sources of published figures, references that are missing
};

// Returns the tables of all [report] of the result: of each a table for every combination of the swept values that its
// rows, columns and cells do not show. A swept key that has one value in every row, column or place of the list counts
// as shown. A table without any case has a title and a note only. Requires a valid document of schema regatta.result/1:
// others throw nlohmann::json::exception.
std::vector<pivot_table> pivot_tables(const nlohmann::json& result);

} // namespace regatta
