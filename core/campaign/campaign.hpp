// SPDX-License-Identifier: Apache-2.0
//
// Runs all cases of an experiment, one after the other, every repeat beside its baseline. Cases that share a baseline
// form a group. A round runs one repeat of all cases of the group, their baseline twice, and one contention control for
// each number of workers that needs one, in an order shuffled by experiment.seed and the repeat: so a drift of the
// machine's clock rate affects all of them alike. A finished run becomes a record at once. A repeat of a case that has
// complete records does not run again (--resume); the others run in a new round, because runs that are compared must
// run close in time.
#pragma once

#include "campaign/plugin_facts.hpp"
#include "campaign/plugin_files.hpp"
#include "campaign/progress.hpp"
#include "experiment/experiment.hpp"
#include "launch/interruption.hpp"
#include "launch/launch.hpp"
#include "measure/records.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

// Called in campaign::run() on its thread. Each may be empty. They must not throw: an exception would fail the case
// that runs, or leave run().
struct campaign_hooks {
  std::function<void(const regatta::progress&)> progress; // a few times a second, and when a run begins
  // A message of a rank, or of the coordinator (coordinator_rank); `level` is one of RG_LOG_*.
  std::function<void(std::uint32_t rank, int level, const std::string& text)> log;
  // begin_run: a run begins, with a name like "case-1-repeat-2-baseline", or the timing of kernels, "case-1-kernels".
  // log_file: returns the log file of a rank in the current run, for the error message of a failure; "" if there is
  // none.
  std::function<void(const std::string& name)> begin_run = {};
  std::function<std::string(std::uint32_t rank)> log_file = {};
  // A run succeeded: removes the member "trace", which no record keeps, from the result of each rank. `hosts`: of
  // launch_result.
  std::function<void(std::vector<nlohmann::json>& ranks, const std::vector<nlohmann::json>& hosts)> take_traces = {};
  // A round begins: measures the speed of the machine and returns the member "machine" of the round's record
  // (measure/records.hpp).
  std::function<nlohmann::json()> calibrate = {};
  // A round began, a run ended, kernels were timed, a case failed, or measure.precision decided on its repeats:
  // `record` has been added to the campaign's records.
  std::function<void(const nlohmann::json& record)> record;
};

class campaign {
public:
  // `records` receives the records of runs, and may hold records of earlier ones. All arguments
  // but `hooks` must outlive this object. Sets facts.interrupted to a function that uses this
  // object: replace it before you use `facts` after this object is destroyed.
  campaign(plugin_facts_cache& facts, const experiment& e, plugin_files& files, campaign_log& records,
           campaign_hooks hooks);

  // Runs every repeat of every case that has no record. Returns false if the user interrupted (SIGINT, SIGTERM,
  // SIGHUP), or if any host was lost (lost_host()) before the last run began. Does not throw for failures of cases:
  // they become records. After a failure the case's other repeats do not run. Call it once.
  bool run();

  // Returns which of the launcher's hosts was lost, and why; no run began afterwards, whether it needs the host or not.
  // The run that the host took part in has failed, unless its ranks there had ended. Empty: none was, or the user
  // interrupted.
  std::string lost_host() const;

  // Returns the worst exit code (worse_exit_code()) of all failures and of cases that this machine cannot run (77); 0:
  // none, or only cases that a sweep skips because of a failure (usage).
  int worst_exit_code() const { return worst_; }

private:
  struct planned;
  struct round_run;
  struct outcome;

  // Runs all rounds of a group, with measure.precision for at most `share` seconds. Returns false if the user
  // interrupted, or if a host is lost.
  bool run_group(std::vector<planned>& group, double share);
  void prepare_case(planned& p); // sets p.facts; a case that cannot run fails or is skipped
  // Returns the runs of one repeat of these cases, with `length` times the configured steps; a baseline or contention
  // control that several need is there once.
  static std::vector<round_run> runs_of_round(const std::vector<planned*>& cases, std::int64_t length);
  // Runs the repeat of all cases that lack it. Returns false if the user interrupted, or if a host is lost. A run that
  // fails, fails all cases that need it, but if a host is lost, only the first: the others can run when it is back.
  bool run_round(std::vector<planned>& group, std::uint64_t repeat, std::int64_t length);
  // Runs `c` once. A successful run becomes a record with the members of `done` and the measurements. `name` is its
  // part of progress and of begin_run's name.
  outcome run_once(const case_config& c, finished_run done, const std::string& name);
  // Returns the chosen kernels for prepare(), from a record or by timing them now; "" without tuning, or if the user
  // interrupted.
  std::string kernels_for(const case_config& c);
  // Adds a record to records_ and passes it to the hook.
  void keep(const nlohmann::json& record);
  // Records why a case failed or was skipped (`status`); its remaining repeats do not run. `code` is an exit_code, or 0
  // if the failure does not count for worst_exit_code(). `dump`: rank_failure::dump.
  void fail(planned& p, const std::string& status, const std::string& error, int code, const std::string& dump = "");
  // Passes the progress of the current run to the hook; `ranks` is empty before the ranks have begun.
  void show(const std::vector<rank_progress>& ranks);

  plugin_facts_cache& facts_;
  const experiment& experiment_;
  plugin_files& files_;
  campaign_log& records_;
  campaign_hooks hooks_;
  regatta::progress progress_;
  std::int64_t campaign_begin_ = 0, first_seen_ = 0; // rg::steady_ns()
  std::uint64_t first_samples_ = 0; // of the current run, when the first were seen, at first_seen_; 0: none yet
  std::size_t runs_done_ = 0, runs_planned_ = 0; // without baselines and contention controls
  interruption interruption_;
  bool interrupted_ = false;
  int worst_ = 0;
};

} // namespace regatta
