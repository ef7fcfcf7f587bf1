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
  std::vector<std::vector<nlohmann::json>> values; // of each cell, by row; null for a cell without a number
};

// Returns a table for each combination of the swept values that are neither [report]'s rows nor its columns; none if
// [report] lacks rows, columns or value. `result` as of render().
std::vector<pivot_table> pivot_tables(const nlohmann::json& result);

} // namespace regatta
