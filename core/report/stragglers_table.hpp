// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "report/text_table.hpp"

namespace regatta {

// [any] Returns the ranks of each case whose slowest rank holds the others back ("stragglers" of its entry): up to four
// of the slowest ones, and the fastest one. Without rows if there is no such case. A column names the case if the
// result has several.
text_table table_of_stragglers(const nlohmann::json& result);

} // namespace regatta
