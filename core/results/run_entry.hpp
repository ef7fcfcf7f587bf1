// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "experiment/experiment.hpp"
#include "results/run_figures.hpp"

namespace regatta {

// [any] Returns one run as an object for "repeats" in result.json, with the values from which the figures of a case can
// be recomputed. docs/measurement.md names the members. Of more than 1000 steps (of a worker) or losses, at most 1000
// evenly spread ones are listed, with the numbers of their steps; quantiles of steps are then approximate. A worker's
// steps are numbered from the first timed one; the steps of losses from the first warm-up step. `m` has the target of
// the metric.
nlohmann::json run_entry(const run_figures& run, const measure_config& m);

// Returns {"first", "last", "steps", "curve", "seconds"}: the first and last loss, and for the listed losses arrays of
// their steps (counted from the first warm-up step), values, and times: when the last worker ended the step, in seconds
// from that worker's begin of the timed region, without evaluations; null for a warm-up step. Returns null if there is
// no loss.
nlohmann::json loss_entry(const run_figures& run);

// Returns an array of {"step": completed steps, "value", "seconds", "training_seconds"}, one per evaluation; empty if
// there was none. "seconds" is the time from the begin of the timed region to the end of the last of these steps,
// without evaluations; null if that is a warm-up step or no step was completed. "training_seconds" begins with the
// first warm-up step instead, and is never null.
nlohmann::json metric_curve(const run_figures& run);

// Return an array with an element for each rank. memory_entry(): the peak of host memory in bytes, the largest of the
// runs (null: unknown). gpu_entry(): an object of the GPU's figures: of peak memory and temperature the largest of the
// runs, of other numbers the median, and the first run's names (null: no GPU; if no rank has one, null instead of the
// array). Require a run.
nlohmann::json memory_entry(const std::vector<const run_figures*>& runs);
nlohmann::json gpu_entry(const std::vector<const run_figures*>& runs);

// Returns {"n", "median", "min", "max", "low", "high", "coverage"} of the repeats' values: `low` to `high` is
// median_interval(), which contains the true median with probability `coverage`. Null if there is no value.
nlohmann::json figure_entry(const std::vector<double>& values);
// Returns figure_entry() of ratios of paired runs, with "smallest_detectable": the smallest relative difference of the
// ratio that so many repeats find in four of five campaigns, smallest_detectable() of the logarithms (null for one
// repeat). Requires ratios above 0.
nlohmann::json ratio_entry(const std::vector<double>& ratios);

// Returns the time of all evaluations, those of the warm-up included, of the worker that took longest, in seconds;
// std::nullopt if there is no metric after the last step.
std::optional<double> evaluation_seconds(const run_figures& run);

// Returns the number, or null for std::nullopt.
nlohmann::json or_null(const std::optional<double>& value);

} // namespace regatta
