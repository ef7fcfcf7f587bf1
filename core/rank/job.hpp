// SPDX-License-Identifier: Apache-2.0
//
// What one rank is told to do, as it travels from the coordinator.
#pragma once

#include "config/experiment.hpp"
#include "rank/exchange.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

struct rank_job {
  case_config config;
  cluster_layout layout;
  std::vector<std::string> files;      // of the plugins that the case needs
  std::string address;                 // to listen on
  std::uint64_t batch = 0;             // samples a worker trains on in one step
  std::uint64_t warmup = 0, steps = 0; // steps: 0 where config.measure.seconds counts
  std::uint64_t period = 1;            // steps are a multiple of it
  std::string kernels;                 // what the tuning process picked; empty: the rank picks by rule
  std::uint64_t spin_ns = 0;
  bool tune = false; // only time kernels, and bring back what was picked

  // The case's, but that fp16 always waits for the norm, as clipping does: gradients may overflow, and such a step leaves
  // all weights as they are.
  optimizer_config optimizer() const;
  std::uint64_t global_batch() const { return batch * layout.workers; }
};

nlohmann::json to_json(const rank_job& job);
rank_job job_from_json(const nlohmann::json& j);

} // namespace regatta
