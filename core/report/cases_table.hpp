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
  std::vector<std::string> constant; // "2 workers": columns whose cells are all equal, as text
};

// `parts`: number of causes of lost efficiency that are named; the others are added up, or with 0 left out.
cases_table table_of_cases(const nlohmann::json& result, std::size_t parts);

} // namespace regatta
