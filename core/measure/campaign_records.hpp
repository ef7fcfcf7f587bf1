// SPDX-License-Identifier: Apache-2.0
//
// The records of a campaign: which runs have ended, and their figures. Its results depend only on them
// (results/result_document.hpp). Each record has a "kind":
//
//   campaign   the first record: {"context"}
//   run        a successful run, written as soon as it ends: {"number", counted from 1, "role": "case", "baseline" or
//              "contention", "index" and "case" of the case that it belongs to, "repeat", counted from 0,
//              "asynchronous", "plugins": SHA-256 by path, "ranks": measurements of each rank}. With role "case" also
//              {"facts", "baseline" and "contention": numbers of the runs that it is compared with, or null}
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
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

// The contents of a run's record.
struct finished_run {
  std::string role;
  std::size_t index = 0;
  std::uint64_t repeat = 0;
  bool asynchronous = false;
  nlohmann::json plugins, ranks;
  // Only for role "case":
  case_facts facts;
  std::optional<std::uint64_t> baseline, contention;
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

  const nlohmann::json& context() const { return context_; }               // null before a campaign's record
  std::uint64_t last_run() const { return last_; }                         // the highest number; 0: no run
  bool has(std::size_t index, std::uint64_t repeat) const;                 // a record of the case's run
  std::optional<std::string> kernel_choices(const std::string& key) const; // kernels in a record; nullopt: none
  std::map<std::string, std::string> plugins() const { return sums_; }     // of all runs: SHA-256 by path

  // What the records say of one case.
  struct case_state {
    case_facts facts;
    std::map<std::uint64_t, repeat_figures> repeats; // by their numbers, counted from 0
    nlohmann::json failure;                          // the record of a failure since its last run; null: none
    std::set<std::uint64_t> released;                // repeats whose figures were freed
  };
  // Valid as long as this object.
  const case_state& of_case(std::size_t index) const { return cases_.at(index); }
  // Frees the figures of a case's repeats, which hold every step; has() still returns true for them.
  void release(std::size_t index);

private:
  case_state& case_of(const nlohmann::json& record);
  void add_run(const nlohmann::json& record);

  const experiment& experiment_;
  nlohmann::json context_;
  std::vector<case_state> cases_;
  std::map<std::uint64_t, run_figures> compared_; // baselines and contention controls, by number
  std::map<std::string, std::string> kernel_choices_, sums_;
  std::uint64_t last_ = 0;
};

} // namespace regatta
