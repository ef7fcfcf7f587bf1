// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "report/text_table.hpp"

namespace regatta {

// The cases of a result as rows: speed, scaling, and causes of lost efficiency.
struct cases_table {
  text_table table;
  // Columns that are left out of the table because their cells are all equal (of the baselines' samples/s: those with
  // a value), as text: "workers: 2". Most columns without any value are left out too, without a text.
  std::vector<std::string> constant;
};

// Returns a row for each entry of `result`. The column of lost efficiency names the `parts` largest causes and adds up
// the others; with 0 it names the largest, and "…" stands for the others.
cases_table table_of_cases(const nlohmann::json& result, std::size_t parts);

} // namespace regatta
