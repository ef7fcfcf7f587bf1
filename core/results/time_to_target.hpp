// SPDX-License-Identifier: Apache-2.0
//
// How many steps and seconds of training it took until the metric reached measure.target.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "experiment/experiment.hpp"
#include "results/run_figures.hpp"

namespace regatta {

struct time_to_target {
  std::uint64_t steps = 0; // completed, those of the warm-up included
  double seconds = 0;      // run_figures::metric_training_seconds
};

// [any] Returns those of the first evaluation of a run that reached the target; std::nullopt if none did.
std::optional<time_to_target> time_to_target_of(const measure_config& m, const run_figures& run);

// [any] Sets in a case's entry "target" ({"metric", "value", "side", "reached": number of repeats}), "steps_to_target"
// and "seconds_to_target". These are figures over all repeats, in which a repeat that did not reach the target takes
// longer than every one that did: a median or a bound among such repeats is null, and both figures are null if no
// repeat reached it. Leaves the entry as it is without a target.
void add_time_to_target(nlohmann::json& entry, const measure_config& m, const std::vector<repeat_figures>& repeats);

} // namespace regatta
