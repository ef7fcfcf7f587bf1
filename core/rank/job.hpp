// SPDX-License-Identifier: Apache-2.0
//
// The work order of one rank, as the coordinator sends it.
#pragma once

#include "cluster/layout.hpp"
#include "experiment/experiment.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

struct rank_job {
  case_config config;
  cluster_layout layout;
  std::vector<std::string> files; // paths of the plugins that the case needs
  // IP addresses of cluster.interface, by host of the layout
  std::vector<std::vector<std::string>> addresses;
  std::uint64_t batch = 0;             // samples of a worker in one step, over all its micro-batches
  std::uint64_t warmup = 0, steps = 0; // steps: 0 if config.measure.seconds limits the run
  std::uint64_t period = 1;            // the number of timed steps becomes a multiple of it
  // the kernels that the autotuning process chose, if train.kernels is "timed"; empty: it had nothing to choose
  std::string kernels;
  bool row_major = false;     // the strategy reads tensors as row-major matrices (RG_PLAN_ROW_MAJOR)
  std::uint64_t spin_ns = 0;  // how long a waiting rank spins before it sleeps
  bool several_hosts = false; // a launcher's: layout.host_of are real hosts; else all ranks are on one
  bool tune = false;          // only time kernels and return those chosen

  // Returns the case's optimizer. With fp16 it always defers the update until the norm is known, as clipping does:
  // gradients may overflow, and a step with overflow must leave all weights unchanged. Without clipping, clip_norm is
  // then infinite.
  optimizer_config optimizer() const;
  // Returns the number of lower ranks on the same real host, by which ranks take devices.
  std::uint32_t local_rank(std::uint32_t rank) const {
    std::uint32_t lower = 0;
    for (std::uint32_t r = 0; r < rank; ++r) lower += !several_hosts || layout.host_of[r] == layout.host_of[rank];
    return lower;
  }
  std::uint64_t global_batch() const { return batch * layout.workers; }
  std::uint64_t micro_batches() const { return static_cast<std::uint64_t>(config.train.accumulate); } // per step
  std::uint64_t micro_batch() const { return batch / micro_batches(); }                               // samples of each
};

nlohmann::json to_json(const rank_job& job);
// Throws failure (run) if a member is missing or of another type, or "config" is no complete case.
rank_job job_from_json(const nlohmann::json& j);

} // namespace regatta
