// SPDX-License-Identifier: Apache-2.0
//
// What the repeats of one case come to: its entry under "results" in result.json.
//
// Repeats are paired: each runs the case, its baseline (one worker under `none`) and the contention control (as many
// workers under `none`) close together, so that what the machine does meanwhile hits all three.
//
//   efficiency = median of samples/s / (workers * baseline's samples/s), paired; min and max beside it
//   speedup    = median of samples/s / baseline's samples/s, paired
//   contention = median of the contention run's samples/s / (workers * baseline's samples/s), paired
//   efficiency_over_contention = median of samples/s / contention run's samples/s, paired
//
// Lost shares explain 1 - efficiency. For each part p of the step (compute is forward and backward together), with T
// the mean step of the case and r = samples a worker's step here / samples a step of the baseline (1 under weak
// scaling, 1 / workers under strong scaling):
//   lost[p] = (time[p] - r * baseline.time[p]) / T
// Their sum is 1 - r * baseline.T / T. That is 1 - efficiency but for what no worker's steps show, such as one worker
// leaving the barrier later than another; lost["other"] takes that remainder, so that the shares sum to 1 - efficiency
// exactly. `lost` and `efficiency.median`, and likewise `time` and `samples_per_second.median`, come from the same
// repeats: the one in the middle, or the mean of the two in the middle.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "config/experiment.hpp"
#include "measure/figures.hpp"

namespace regatta {

// What the coordinator knows of a case besides its configuration.
struct case_facts {
  std::uint64_t servers = 0; // started: 0 where the strategy has none
  bool synchronous = true;   // RG_PLAN_SYNCHRONOUS
  std::uint64_t batch_per_worker = 0, global_batch = 0;
  std::string unit = "samples";       // rg_model_info.unit
  bool batch_statistics = false;      // the model has RG_TENSOR_STATE: its loss depends on how workers share the batch
  std::uint64_t parameters = 0;       // by shape, tables included; 0: unknown
  std::uint64_t table_parameters = 0; // those in sparse tables
  std::string data; // SHA-256 of the data set and of what is evaluated on, as in the context; empty: there is none
  std::vector<std::string> warnings;
};

struct repeat_figures {
  run_figures run;
  std::optional<run_figures> baseline, contention; // of the same repeat; nothing: not run
};

// The entry of a case all of whose repeats ran. At least one repeat. [main]
nlohmann::json case_entry(const case_config& config, const case_facts& facts,
                          const std::vector<repeat_figures>& repeats);

// The entry of a case that is not "ok": `status` is "failed", "skipped" or "partial". Repeats that ran give figures all
// the same; values that were not measured are null.
nlohmann::json case_entry(const case_config& config, const case_facts& facts, const std::string& status,
                          const std::string& error, const std::vector<repeat_figures>& repeats = {});

// Whether an entry of result.json has the figures of at least one repeat and did not fail: "ok" or "partial".
bool has_figures(const nlohmann::json& entry);

// Hashes by name: two cases that agree on one may be compared as far as it goes. [any]
//   model       plugin and parameters               optimizer   rule, coefficients, scaling of the rate
//   synchrony   synchronous, asynchronous, independent (several workers under `none`)
//   precision   what is computed in                 kernels     which were picked ("" before a run)
//   data        samples of a step: source, content, order, seed; and, for models that normalise over a worker's batch,
//               how large that is
//   layout_id   of the weights in memory
nlohmann::json fingerprint(const case_config& config, const case_facts& facts, const std::string& kernels,
                           const std::string& layout);

} // namespace regatta
