// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "measure/figures.hpp"

namespace regatta {

// [main] Returns one run as an object of result.json, with the samples behind every figure of a case, so that each
// figure can be recomputed. docs/measurement.md names the members. Curves and steps are limited to 1000 points, with
// their numbers.
nlohmann::json run_entry(const run_figures& run);

// {"first", "last", "steps", "curve", "seconds"}; null if there is no loss.
nlohmann::json loss_entry(const run_figures& run);

// An array of {"step", "value", "seconds"}, one per evaluation.
nlohmann::json metric_curve(const run_figures& run);

nlohmann::json or_null(const std::optional<double>& value);

} // namespace regatta
