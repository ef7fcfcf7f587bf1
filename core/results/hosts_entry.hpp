// SPDX-License-Identifier: Apache-2.0
//
// The members of a result about the hosts of a case: where its ranks ran, how well their clocks are known, and which
// worker is the slowest. docs/measurement.md names the members.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "results/run_figures.hpp"

namespace regatta {

// All functions are [any] and require at least one run.

// Returns {"input", "forward", "backward", "update", "exposed_communication", "wait", "other"}. If `parts` has time
// that could not be divided, "exposed_communication" and "wait" are null, and "blocked" is their sum.
nlohmann::json time_entry(const time_parts& parts);
// Returns the mean of the parts. Parts that are not divided in one of them are divided in none.
time_parts mean_parts(const std::vector<time_parts>& all);

// Returns by rank {"host", "numa_node"}.
nlohmann::json places_entry(const run_figures& run);

// Returns {"hosts": [{"host", "ahead_seconds" of the clock of the campaign's process, "uncertainty_seconds"}],
// "uncertainty_seconds", "reason": why times of the hosts cannot be compared, or null} of the run whose clocks are
// known worst; null if the workers of all runs have one clock (common_clock.hpp).
nlohmann::json clocks_entry(const std::vector<const run_figures*>& runs);

// Returns {"ranks": by worker {"rank", "host", "compute_seconds": median over the runs, "last": mean over the runs of
// the share of steps in which it ended its backward pass last, null if a run lacks it}, "held_back_by": index in
// "ranks", or null}; null with one worker, or if the runs had different workers.
nlohmann::json stragglers_entry(const std::vector<const run_figures*>& runs);

} // namespace regatta
