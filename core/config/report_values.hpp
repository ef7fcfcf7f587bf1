// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace regatta {

// [any] Returns the figures that `[report] value` may name, as paths in a case's entry in result.json: "efficiency",
// "bytes.sent_per_step.worker". A path of an object with a member "median" means that median. Statistics of strategies
// are not in the list.
const std::vector<std::string>& report_values();

// [any] Returns true if `path` is one of report_values(), or has the form of a statistic of a strategy:
// "strategy.NAME.mean", "strategy.NAME.max" or "strategy.NAME.per_step".
bool is_report_value(std::string_view path);

} // namespace regatta
