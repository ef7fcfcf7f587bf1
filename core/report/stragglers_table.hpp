// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "report/text_table.hpp"

namespace regatta {

// [any] Returns the ranks of each case whose slowest rank holds the others back ("stragglers" of its entry): all of at
// most five, else the four slowest and the fastest. After 8 cases, a last row says how many more there are. Without
// rows if there is no such case. A column names the case if the result has several.
text_table table_of_stragglers(const nlohmann::json& result);

} // namespace regatta
