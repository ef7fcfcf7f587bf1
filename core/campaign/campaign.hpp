// SPDX-License-Identifier: Apache-2.0
//
// All cases of an experiment, one after the other, every repeat paired with its baseline. Cases that share a baseline
// form a group and take turns within each repeat, so that a machine whose clock drifts drifts for all of them. A run
// that is finished becomes a record at once; runs that have their record already do not run again.
#pragma once

#include "campaign/answers.hpp"
#include "campaign/plugin_files.hpp"
#include "campaign/records.hpp"
#include "config/experiment.hpp"
#include "launch/interruption.hpp"
#include "launch/launch.hpp"
#include "report/progress.hpp"

#include <cstdint>
#include <functional>
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
  // A run or a case is over; the record is among the campaign's already.
  std::function<void(const nlohmann::json& record)> record;
  outside_ranks* outside = nullptr; // the processes that take part; null: they are started for every run
};

class campaign {
public:
  // `records` gets those of the runs, and says which are there already. All arguments but the hooks are the caller's.
  campaign(plugin_answers& answers, const experiment& e, plugin_files& files, campaign_records& records,
           campaign_hooks hooks);

  // Runs every repeat of every case that has no record. Returns false when it was interrupted. Never throws for what
  // happens to a case: that is in its record.
  bool run();

  int worst_exit_code() const { return worst_; } // of the failed cases; 0: none failed

private:
  struct planned;
  struct group;
  struct outcome;

  bool run_group(group& g);
  bool run_repeat(group& g, std::uint64_t repeat);
  // Runs `c`. The record of a run that ended well says what `done` says, and what was measured.
  outcome run_once(const case_config& c, finished_run done);
  std::string kernels_for(const case_config& c);
  void keep(const nlohmann::json& record);
  void fail(planned& p, const std::string& status, const std::string& error, int code, const std::string& dump = "");
  void show(const std::vector<rank_progress>& ranks);

  plugin_answers& answers_;
  const experiment& experiment_;
  plugin_files& files_;
  campaign_records& records_;
  campaign_hooks hooks_;
  regatta::progress progress_;
  std::int64_t run_begin_ = 0, campaign_begin_ = 0;
  std::size_t runs_done_ = 0, runs_planned_ = 0;
  interruption interruption_;
  bool interrupted_ = false;
  int worst_ = 0;
};

} // namespace regatta
