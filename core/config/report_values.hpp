// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace regatta {

// Returns the figures of a case's entry in result.json that `[report] value` may name: "efficiency",
// "bytes.sent_per_step.worker". The name of an object with a median stands for that median.
const std::vector<std::string>& report_values();

// Returns true if `path` is one of them, or a statistic of a strategy: "strategy.NAME.mean", ".max" or ".per_step".
bool is_report_value(std::string_view path);

} // namespace regatta
