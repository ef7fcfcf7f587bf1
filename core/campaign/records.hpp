// SPDX-License-Identifier: Apache-2.0
//
// The records of a campaign, and its results, which are a function of the records alone. Each has a "kind":
//
//   campaign   the first one: {"context"}
//   run        a run that ended well, at once when it has: {"number", counted from 1, "role": "case", "baseline" or
//              "contention", "index" and "case" of the case that it was made for, "repeat", from 0 on, "asynchronous",
//              "plugins": SHA-256 by path, "ranks": what each rank measured}. That of a case also has {"facts",
//              "baseline" and "contention": the numbers of the runs that it is paired with, or null}
//   failure    a case that failed or was skipped: {"index", "case", "status", "error", "facts"}
//   kernels    what was picked for all runs of the same shapes: {"key", "picks"}
#pragma once

#include "config/experiment.hpp"
#include "measure/figures.hpp"
#include "measure/summary.hpp"

#include <cstdint>
#include <map>
#include <optional>
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
  // Of a case's own run:
  case_facts facts;
  std::optional<std::uint64_t> baseline, contention;
};

class campaign_records {
public:
  // The experiment is the caller's, and stays as it is.
  explicit campaign_records(const experiment& e);

  // Takes in a record. Throws failure where it is damaged or of another experiment; then it counts for nothing.
  void add(const nlohmann::json& record);

  nlohmann::json campaign_record(const nlohmann::json& context) const;
  nlohmann::json run_record(const finished_run& r) const; // with the next number
  nlohmann::json failure_record(std::size_t index, const std::string& status, const std::string& error,
                                const case_facts& facts, const std::string& dump = "") const;
  nlohmann::json kernels_record(const std::string& key, const std::string& picks) const;

  const nlohmann::json& context() const { return context_; }           // null before the first record
  std::uint64_t last_run() const { return last_; }                     // the highest number; 0: none
  bool has(std::size_t index, std::uint64_t repeat) const;             // the case's own run
  std::optional<std::string> picks(const std::string& key) const;      // recorded kernels
  std::map<std::string, std::string> plugins() const { return sums_; } // of all runs: SHA-256 by path
  std::size_t finished_cases() const;                                  // those that are "ok"

  const nlohmann::json& entry(std::size_t index) const { return cases_.at(index).entry; } // null: it has none
  // result.json: schema, context, and the entries of those cases that have one, in the order of the cases. A case with
  // some of its repeats is "partial".
  nlohmann::json document() const;

private:
  struct case_state {
    case_facts facts;
    std::map<std::uint64_t, repeat_figures> repeats; // until all are there: the steps of a long campaign are many
    bool complete = false;
    nlohmann::json failure; // null: none since its last run
    nlohmann::json entry;   // null: nothing is known of it
  };
  case_state& case_of(const nlohmann::json& record);
  void add_run(const nlohmann::json& record);
  void summarise(std::size_t index);

  const experiment& experiment_;
  nlohmann::json context_;
  std::vector<case_state> cases_;
  std::map<std::uint64_t, run_figures> compared_; // baselines and contention controls, by number
  std::map<std::string, std::string> picks_, sums_;
  std::uint64_t last_ = 0;
};

} // namespace regatta
