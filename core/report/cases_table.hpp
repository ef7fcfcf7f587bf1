// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "report/text_table.hpp"

namespace regatta {

// The cases of a result as rows: how fast, how well it scaled, and why not better.
struct cases_table {
  text_table table;
  std::vector<std::string> constant; // "2 workers": what would have been a column of equal cells
};

// `parts`: how many of the parts that efficiency was lost to are named; the others come as one sum, or with 0 not at all.
cases_table table_of_cases(const nlohmann::json& result, std::size_t parts);

} // namespace regatta
