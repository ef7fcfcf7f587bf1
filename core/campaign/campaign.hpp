// SPDX-License-Identifier: Apache-2.0
//
// All cases of an experiment, one after the other, every repeat paired with its baseline. Cases that share a baseline
// form a group and take turns within each repeat, so that a machine whose clock drifts drifts for all of them. What is
// finished is handed out at once: an interrupted campaign keeps it.
#pragma once

#include "config/experiment.hpp"
#include "launch/launch.hpp"
#include "measure/figures.hpp"
#include "registry/registry.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

// Where a campaign stands, for whoever shows it.
struct campaign_progress {
  std::size_t case_number = 0, cases = 0; // from 1
  std::uint64_t repeat = 0, repeats = 0;  // from 1
  std::string what;                       // "allreduce, shm, 2 workers", "baseline", "timing kernels"
  std::uint64_t step = 0, steps = 0;      // of the slowest worker
  double samples_per_second = 0;          // over all workers, so far; 0: unknown
  std::optional<double> seconds_left;     // of the campaign
};

struct campaign_hooks {
  std::function<void(const campaign_progress&)> progress;
  std::function<void(std::uint32_t rank, int level, const std::string& text)> log;
  // The entries so far, one a case of the experiment; null where there is none yet.
  std::function<void(const std::vector<nlohmann::json>&)> results;
};

class campaign {
public:
  // `done`: entries of an earlier run to keep, by index of the case; null: to run.
  campaign(const registry& plugins, const experiment& e, std::vector<nlohmann::json> done, campaign_hooks hooks);

  // Runs what is not done. Returns false when it was interrupted. Never throws for what happens to a case: that is in
  // its entry.
  bool run();

  const std::vector<nlohmann::json>& entries() const { return entries_; }
  int worst_exit_code() const { return worst_; } // of the failed cases; 0: none failed

private:
  struct planned;
  struct group;
  struct outcome;

  bool run_group(group& g);
  bool run_repeat(group& g, std::uint64_t repeat);
  outcome run_once(const case_config& c, const std::string& what);
  std::string kernels_for(const case_config& c);
  void finish(planned& p);
  void fail(planned& p, const std::string& status, const std::string& error, int code);
  void show(const std::vector<rank_progress>& ranks);

  const registry& plugins_;
  const experiment& experiment_;
  campaign_hooks hooks_;
  std::vector<nlohmann::json> entries_;
  std::map<std::string, std::string> kernels_; // by kernels_key
  campaign_progress progress_;
  std::int64_t run_begin_ = 0, campaign_begin_ = 0;
  std::uint64_t run_batch_ = 0;
  std::size_t runs_done_ = 0, runs_planned_ = 0;
  bool interrupted_ = false;
  int worst_ = 0;
};

} // namespace regatta
