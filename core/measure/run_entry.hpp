// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "measure/figures.hpp"

namespace regatta {

// One run as result.json keeps it: the samples that every figure of a case is computed from, so that each can be
// computed again. docs/measurement.md names the members. Of curves and steps at most 1000, with their numbers. [main]
nlohmann::json run_entry(const run_figures& run);

// {"first", "last", "steps", "curve", "seconds"}; null where there is no loss.
nlohmann::json loss_entry(const run_figures& run);

// {"step", "value", "seconds"} of every evaluation.
nlohmann::json metric_curve(const run_figures& run);

nlohmann::json or_null(const std::optional<double>& value);

} // namespace regatta
