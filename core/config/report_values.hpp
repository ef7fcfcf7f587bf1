// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace regatta {

// The figures that a case's entry in result.json has one of, as `[report] value` names them: "efficiency",
// "bytes.sent_per_step.worker". An object with a median stands for it.
const std::vector<std::string>& report_values();

// Whether `path` is one of them, or what a strategy reports of itself: "strategy.NAME.mean", ".max" or ".per_step".
bool is_report_value(std::string_view path);

} // namespace regatta
