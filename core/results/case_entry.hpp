// SPDX-License-Identifier: Apache-2.0
//
// Combines the repeats of one case into its entry under "results" in result.json.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "experiment/experiment.hpp"
#include "measure/case_facts.hpp"
#include "results/efficiency.hpp"

namespace regatta {

// [any] Returns the entry of a case. `status` is "ok" if all of its repeats ran, else "failed", "skipped" or "partial";
// "ok" and "partial" require a repeat. `error` says why the case is not "ok"; empty if it is. Repeats that ran always
// give figures; values that were not measured are null.
nlohmann::json case_entry(const case_config& config, const case_facts& facts, const std::string& status,
                          const std::string& error, const std::vector<repeat_figures>& repeats = {});

// Returns the warning "debug build: ..." if this program was compiled without NDEBUG; else std::nullopt.
std::optional<std::string> build_warning();

// [any] Returns the fingerprint of a case as an object. Two cases with an equal member are comparable in that respect:
//   model       hash of plugin and parameters       optimizer   hash of rule, schedule, other settings
//   synchrony   synchronous, asynchronous, independent (several workers under `none`)
//   precision   type that the model computes in     kernels     hash of `kernels`, the chosen ones (null if empty)
//   executor    id of the one that compiled the model's graph (null if it is no graph)
//   data        hash of the samples of a step: source, content, order, seed; and of the size of a worker's batch, for
//               models that normalise over it
//   layout_id   hash of `layout`, that of the weights in memory (null if empty)
//   isa         instruction set of the ranks        algorithms  algorithms_of() the strategy (null if empty)
//   simulated   facts.simulated (null if empty: the case was measured)
// `kernels`, `layout`, `isa` and strategy are those of `run`, whose figures are empty before a run (null).
nlohmann::json fingerprint(const case_config& config, const case_facts& facts, const run_figures& run);

// [any] Returns the names of the algorithms that the strategy ran, with commas between: those of its counted values
// "algorithm_NAME". Empty if there are none.
std::string algorithms_of(const strategy_records& strategy);

} // namespace regatta
