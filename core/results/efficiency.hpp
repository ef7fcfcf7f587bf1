// SPDX-License-Identifier: Apache-2.0
//
// Efficiency, speedup and contention of a case, and what its efficiency was lost to.
//
// Repeats are paired: each runs the case, its baseline (one worker under `none`) and the contention control (as many
// workers under `none`) close together, so that changes of the machine affect all three. The baseline runs twice: the
// ratio of the two (an A/A test) differs from 1 only by noise.
//
//   noise      = median of the second baseline's samples/s / the first one's, paired; min and max beside it
//   efficiency = median of samples/s / (workers * baseline's samples/s), paired; min and max beside it
//   speedup    = median of samples/s / baseline's samples/s, paired
//   contention = median of the contention run's samples/s / (workers * baseline's samples/s), paired
//   efficiency_over_contention = median of samples/s / contention run's samples/s, paired
//
// Lost shares explain 1 - efficiency. For each part p of the step (compute is forward and backward together), let T be
// the mean step of the case, and r = samples of a worker's step here / samples of a step of the baseline (1 under weak
// scaling, 1 / workers under strong scaling):
//   lost[p] = (time[p] - r * baseline.time[p]) / T
// Their sum is 1 - r * baseline.T / T. That equals 1 - efficiency except for effects that no worker's steps show, such
// as one worker leaving the barrier later than another; lost["other"] takes that remainder, so that the shares sum to
// 1 - efficiency exactly. `lost` and `efficiency.median` come from the same repeats: the one with the middle
// efficiency, or the mean of the two in the middle. `time` and `samples_per_second.median` come from the repeats with
// the middle samples/s in the same way.
#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "experiment/experiment.hpp"
#include "results/run_figures.hpp"

namespace regatta {

// [any] Returns the efficiency of a repeat. Requires that it has a baseline.
double efficiency_of(const case_config& config, const repeat_figures& repeat);

// [any] Sets the members of a case's entry that compare it with its baseline: "baseline_samples_per_second", "noise",
// "speedup", "efficiency", "contention", "efficiency_over_contention" and "lost". Leaves them as they are without a
// baseline.
void add_efficiency(nlohmann::json& entry, const case_config& config, const std::vector<repeat_figures>& repeats);

} // namespace regatta
