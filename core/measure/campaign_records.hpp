// SPDX-License-Identifier: Apache-2.0
//
// The records of a campaign: which runs have ended, and their figures. Its results depend only on them
// (results/result_document.hpp). Each record has a "kind":
//
//   campaign   the first record: {"context"}
//   run        a successful run, written as soon as it ends: {"number", counted from 1, "role": "case", "baseline" or
//              "contention", "index" and "case" of the case that it belongs to, "repeat", counted from 0, "round",
//              "asynchronous", "plugins": SHA-256 by path, "ranks": measurements of each rank}. Runs are compared with
//              those of the same round: one repeat of cases that share a baseline, in shuffled order. A baseline that
//              comes second in its round is compared with the first. With role "case" also {"facts", "needs": the roles
//              of the runs that it is compared with; it counts only if these have run too}
//   machine    the machine before a round: {"round", "machine": {"fma", "copy": rates, and others} or null}
//   failure    a case that failed or was skipped: {"index", "case", "status": "failed" or "skipped", "error", "facts"},
//              and {"dump"} with a line for each rank if the run made no progress
//   kernels    the kernels chosen for all runs with the same shapes: {"key", "kernel_choices"}
#pragma once

#include "experiment/experiment.hpp"
#include "measure/case_facts.hpp"
#include "measure/run_figures.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

// The contents of a run's record.
struct finished_run {
  std::string role;
  std::size_t index = 0;
  std::uint64_t repeat = 0;
  std::uint64_t round = 0; // the number of the round's first run
  bool asynchronous = false;
  nlohmann::json plugins, ranks;
  // Only for role "case":
  case_facts facts;
  bool needs_baseline = false, needs_contention = false;
};

// The speed of the machine before a round: the rates of two CPUs together.
struct machine_rates {
  double fma = 0;  // multiply-adds, FLOP/s
  double copy = 0; // copies, bytes/s
};

class campaign_records {
public:
  // The experiment must outlive this object and not change.
  explicit campaign_records(const experiment& e);

  // Adds a record in memory; the caller writes it to the file. Throws failure if the record is damaged or belongs to
  // another experiment, and then ignores the record.
  void add(const nlohmann::json& record);

  // Return records for add(), without adding them. A run's record has the number last_run() + 1.
  nlohmann::json campaign_record(const nlohmann::json& context) const;
  nlohmann::json run_record(const finished_run& r) const;
  nlohmann::json failure_record(std::size_t index, const std::string& status, const std::string& error,
                                const case_facts& facts, const std::string& dump = "") const;
  nlohmann::json kernels_record(const std::string& key, const std::string& kernel_choices) const;
  nlohmann::json machine_record(std::uint64_t round, const nlohmann::json& machine) const;

  const nlohmann::json& context() const { return context_; } // null before a campaign's record
  std::uint64_t last_run() const { return last_; }           // the highest number; 0: no run
  // Returns true if there are records of the case's run and of all runs that it is compared with.
  bool has(std::size_t index, std::uint64_t repeat) const;
  std::optional<std::string> kernel_choices(const std::string& key) const; // kernels in a record; nullopt: none
  std::map<std::string, std::string> plugins() const { return sums_; }     // of all runs: SHA-256 by path

  // A run of a case, with the runs of its round that it is compared with, as far as these have ended.
  struct recorded_repeat {
    repeat_figures figures;
    std::uint64_t round = 0;
    bool needs_baseline = false, needs_contention = false;

    // Returns true if all runs that it is compared with have ended. Only then it gives figures.
    bool complete() const {
      return (!needs_baseline || (figures.baseline && figures.baseline_again)) &&
             (!needs_contention || figures.contention);
    }
  };
  // The state of one case, from all its records.
  struct case_state {
    case_facts facts;
    std::map<std::uint64_t, recorded_repeat> repeats; // by their numbers, counted from 0
    nlohmann::json failure;                           // the record of a failure since its last run; null: none
    std::set<std::uint64_t> released;                 // repeats whose figures were freed
  };
  // Valid as long as this object.
  const case_state& of_case(std::size_t index) const { return cases_.at(index); }
  // Returns the indices of the cases that have a repeat in a round, without those whose figures were freed.
  std::vector<std::size_t> cases_of(std::uint64_t round) const;
  // Return the rates before a round and before every round so far; without those that are unknown.
  std::optional<machine_rates> rates_of(std::uint64_t round) const;
  std::vector<machine_rates> rates() const;
  // Frees the figures of a case's repeats, which hold every step; has() still returns true for them. Requires that all
  // of them are complete.
  void release(std::size_t index);

private:
  // The runs of a round that its cases are compared with, and the repeats of these cases: index and number.
  struct round_runs {
    std::optional<run_figures> baseline, baseline_again;
    std::map<std::int64_t, run_figures> contention; // by the number of workers
    std::vector<std::pair<std::size_t, std::uint64_t>> repeats;
  };
  static void pair(recorded_repeat& repeat, const round_runs& round, std::int64_t workers);
  case_state& case_of(const nlohmann::json& record);
  void add_run(const nlohmann::json& record);

  const experiment& experiment_;
  nlohmann::json context_;
  std::vector<case_state> cases_;

  std::map<std::uint64_t, round_runs> rounds_;   // by the number of the first run
  std::map<std::uint64_t, machine_rates> rates_; // by round
  std::map<std::string, std::string> kernel_choices_, sums_;
  std::uint64_t last_ = 0;
};

} // namespace regatta
