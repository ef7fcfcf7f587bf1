// SPDX-License-Identifier: Apache-2.0
//
// Combines the repeats of one case into its entry under "results" in result.json.
//
// Repeats are paired: each runs the case, its baseline (one worker under `none`) and the contention control (as many
// workers under `none`) close together, so that changes of the machine affect all three.
//
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
// 1 - efficiency exactly. `lost` and `efficiency.median` come from the same repeats: the middle one, or the mean of the
// two in the middle. So do `time` and `samples_per_second.median`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "config/experiment.hpp"
#include "measure/figures.hpp"

namespace regatta {

// Facts of a case beyond its configuration, as the coordinator knows them.
struct case_facts {
  std::uint64_t servers = 0; // servers that were started: 0 if the strategy has none
  bool synchronous = true;   // RG_PLAN_SYNCHRONOUS
  std::uint64_t batch_per_worker = 0, global_batch = 0;
  std::string unit = "samples";       // rg_model_info.unit
  bool batch_statistics = false;      // the model has RG_TENSOR_STATE: its loss depends on how workers share the batch
  std::uint64_t parameters = 0;       // by shape, sparse tables included; 0: unknown
  std::uint64_t table_parameters = 0; // in sparse tables
  std::string data; // SHA-256 of the data sets for training and evaluation, as in the context; empty: none
  std::vector<std::string> warnings;
};

struct repeat_figures {
  run_figures run;
  std::optional<run_figures> baseline, contention; // of the same repeat; std::nullopt: not run
};

// [any] Returns the entry of a case all of whose repeats ran: its status is "ok". Requires at least one repeat.
nlohmann::json case_entry(const case_config& config, const case_facts& facts,
                          const std::vector<repeat_figures>& repeats);

// [any] Returns the entry of a case that is not "ok": `status` is "failed", "skipped" or "partial" (which requires a
// repeat). `error` says why. Repeats that ran still give figures; values that were not measured are null.
nlohmann::json case_entry(const case_config& config, const case_facts& facts, const std::string& status,
                          const std::string& error, const std::vector<repeat_figures>& repeats = {});

// Returns whether the status of an entry is "ok" or "partial": it has the figures of at least one repeat.
bool has_figures(const nlohmann::json& entry);

// [any] Returns the fingerprint of a case as an object. Two cases with an equal member are comparable in that respect:
//   model       hash of plugin and parameters       optimizer   hash of rule, coefficients, scaling of the rate
//   synchrony   synchronous, asynchronous, independent (several workers under `none`)
//   precision   type that the model computes in     kernels     hash of `kernels`, the chosen ones (null if empty)
//   data        hash of the samples of a step: source, content, order, seed; and of the size of a worker's batch, for
//               models that normalise over it
//   layout_id   hash of `layout`, that of the weights in memory (null if empty)
//   algorithms  `algorithms`, which the strategy ran (null if empty)
// `kernels` and `layout` are those of run_figures, `algorithms` of algorithms_of(); before a run they are empty.
nlohmann::json fingerprint(const case_config& config, const case_facts& facts, const std::string& kernels,
                           const std::string& layout, const std::string& algorithms);

// [any] Returns the names of the algorithms that the strategy ran, with commas between: those of its counted values
// "algorithm_NAME". Empty if there are none.
std::string algorithms_of(const strategy_records& strategy);

} // namespace regatta
