// SPDX-License-Identifier: Apache-2.0
//
// All cases of an experiment, one after the other, every repeat paired with its baseline. Cases that share a baseline
// form a group and take turns within each repeat, so that a machine whose clock drifts drifts for all of them. What is
// finished is handed out at once: an interrupted campaign keeps it.
#pragma once

#include "campaign/interruption.hpp"
#include "config/experiment.hpp"
#include "launch/launch.hpp"
#include "measure/figures.hpp"
#include "registry/registry.hpp"
#include "report/progress.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

struct campaign_hooks {
  std::function<void(const regatta::progress&)> progress;
  std::function<void(std::uint32_t rank, int level, const std::string& text)> log;
  // A run begins, "case-1-repeat-2-baseline"; the file that this run's rank has written to, "" for none.
  std::function<void(const std::string& name)> begin_run = {};
  std::function<std::string(std::uint32_t rank)> log_file = {};
  // A case of the experiment has its entry.
  std::function<void(std::size_t index, const nlohmann::json& entry)> entry;
  outside_ranks* outside = nullptr; // the processes that take part; null: they are started for every run
};

class campaign {
public:
  // `done`: whether the case of this index ran earlier and is kept.
  campaign(const registry& plugins, const experiment& e, std::function<bool(std::size_t)> done, campaign_hooks hooks);

  // Runs what is not done. Returns false when it was interrupted. Never throws for what happens to a case: that is in
  // its entry.
  bool run();

  int worst_exit_code() const { return worst_; } // of the failed cases; 0: none failed

private:
  struct planned;
  struct group;
  struct outcome;

  bool run_group(group& g);
  bool run_repeat(group& g, std::uint64_t repeat);
  outcome run_once(const case_config& c, const std::string& phase);
  std::string kernels_for(const case_config& c);
  void finish(planned& p);
  void fail(planned& p, const std::string& status, const std::string& error, int code);
  void show(const std::vector<rank_progress>& ranks);

  const registry& plugins_;
  const experiment& experiment_;
  campaign_hooks hooks_;
  std::function<bool(std::size_t)> done_;
  std::map<std::string, std::string> kernels_; // by kernels_key
  regatta::progress progress_;
  std::int64_t run_begin_ = 0, campaign_begin_ = 0;
  std::size_t runs_done_ = 0, runs_planned_ = 0;
  interruption interruption_;
  bool interrupted_ = false;
  int worst_ = 0;
};

} // namespace regatta
