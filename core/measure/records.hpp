// SPDX-License-Identifier: Apache-2.0
//
// The records of a campaign: which runs have ended, and what their ranks measured. Its results depend only on them
// (results/campaign_records.hpp). Each record has a "kind":
//
//   campaign   the first record: {"context"}; again if a resumed campaign has another [report]: the last one counts
//   run        a successful run, written as soon as it ends: {"number", counted from 1, "role": "case", "baseline" or
//              "contention", "index" and "case" of its case (of a run that several share: the first of them), "repeat",
//              counted from 0, "round", "asynchronous", "plugins": SHA-256 by path, "ranks": measurements of each rank,
//              "hosts": of a launcher, with the course of each host's clock (clocks/clock_course.hpp); empty without
//              one}. Runs are compared with those of the same round: one repeat of cases that share a baseline, in
//              shuffled order. A baseline that comes second in its round is compared with the first. With role "case"
//              also {"facts", "needs": the roles of the runs that it is compared with; it counts only if these have run
//              too}
//   machine    the machine before a round: {"round", "machine": {"fma", "copy": rates, and others} or null}
//   sampling   with measure.precision, for one case: {"index", "case", "length": its runs have so many times the
//              configured steps, "ended": "" (they have from now on, and earlier repeats no longer count), or the
//              reason for which the case gets no more repeats: "precise", "budget", or "limit" (of the number of
//              repeats)}
//   failure    a case that failed or was skipped: {"index", "case", "status": "failed" or "skipped", "error", "facts"},
//              and {"dump"} if the run made no progress: what each rank does or waits for, in several lines
//   kernels    the kernels chosen for all runs with the same shapes: {"key", "kernel_choices"}
#pragma once

#include "experiment/experiment.hpp"
#include "measure/case_facts.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

// The contents of a run's record.
struct finished_run {
  std::string role;                  // "case", "baseline" or "contention"
  std::size_t index = 0;             // of the case, counted from 0
  std::uint64_t repeat = 0;          // counted from 0
  std::uint64_t round = 0;           // the number of the round's first run
  bool asynchronous = false;         // its ranks exchange messages, and the strategy is not RG_PLAN_SYNCHRONOUS
  nlohmann::json plugins;            // SHA-256 by path
  nlohmann::json ranks;              // the rank_record of each rank, by rank
  std::vector<nlohmann::json> hosts; // launch_result::hosts; rank_record::host names them
  // Only for role "case":
  case_facts facts;
  bool needs_baseline = false, needs_contention = false; // which runs of its round it is compared with
};

// [any] Return records of the experiment `e` for campaign_log::add(). `number` is that of the run.
nlohmann::json campaign_record(const nlohmann::json& context);
nlohmann::json run_record(const experiment& e, std::uint64_t number, finished_run r);
nlohmann::json failure_record(const experiment& e, std::size_t index, const std::string& status,
                              const std::string& error, const case_facts& facts, const std::string& dump = "");
nlohmann::json kernels_record(const std::string& key, const std::string& kernel_choices);
nlohmann::json machine_record(std::uint64_t round, const nlohmann::json& machine);

// [any] Returns {key: value} of the case's swept keys: the member "case" of a record.
nlohmann::json swept_values(const case_config& c);

// How long the cases of a group, which share their runs, have run in this process, in seconds.
struct group_time {
  double spent = 0;      // since the group's first round began
  double last_round = 0; // of its last round; 0 before it
  double share = 0;      // what the group may take of measure.budget
};

// The next round of the cases of a group, or the end of their rounds.
struct next_round {
  std::optional<std::uint64_t> repeat; // the cases' next repeat, counted from 0; std::nullopt: they need no more
  std::int64_t length = 1;             // its runs have so many times the configured steps
  std::vector<nlohmann::json> records; // to add first
  std::optional<double> half_width;    // the largest of the compared figures, relative; std::nullopt: not known yet
};

// The records of a campaign as far as it reads them while it runs. [main]
class campaign_log {
public:
  virtual ~campaign_log() = default;

  // Adds a record in memory. Throws failure if the record is damaged or belongs to another experiment, and then ignores
  // the record.
  virtual void add(const nlohmann::json& record) = 0;

  virtual const nlohmann::json& context() const = 0; // null before a campaign's record
  virtual std::uint64_t last_run() const = 0;        // the highest number of a run; 0: no run
  // Returns true if there are records of the case's run and of all runs that it is compared with (both baselines, the
  // contention control), in one round.
  virtual bool has(std::size_t index, std::uint64_t repeat) const = 0;
  // Returns true if the case has all its repeats, or a record "sampling" ended them; a failure does not count.
  virtual bool complete(std::size_t index) const = 0;
  // Decides what comes next for cases that share their runs, by indices; at least one.
  virtual next_round next(const std::vector<std::size_t>& group, const group_time& time) const = 0;
  virtual std::optional<std::string> kernel_choices(const std::string& key) const = 0; // std::nullopt: not recorded
};

} // namespace regatta
