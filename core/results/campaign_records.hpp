// SPDX-License-Identifier: Apache-2.0
//
// The figures of a campaign's runs, from its records (measure/records.hpp).
#pragma once

#include "experiment/experiment.hpp"
#include "measure/records.hpp"
#include "results/run_figures.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

// The records that were added, as figures by case and repeat. [main]
class campaign_records : public campaign_log {
public:
  // The experiment must outlive this object and not change.
  explicit campaign_records(const experiment& e);

  void add(const nlohmann::json& record) override;
  const nlohmann::json& context() const override { return context_; }
  std::uint64_t last_run() const override { return last_; }
  bool has(std::size_t index, std::uint64_t repeat) const override;
  std::optional<std::string> kernel_choices(const std::string& key) const override;
  bool complete(std::size_t index) const override;
  next_round next(const std::vector<std::size_t>& group, const group_time& time) const override;

  std::map<std::string, std::string> plugins() const { return sums_; } // of all runs: SHA-256 by path

  // A run of a case, with the runs of its round that it is compared with, as far as these have ended.
  struct recorded_repeat {
    repeat_figures figures;
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
    std::int64_t length = 1; // with measure.precision: its runs have so many times the configured steps
    // Why measure.precision gives it no more repeats: "precise", "budget" or "limit" (of repeats); empty: it may.
    std::string ended;
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
  void add_sampling(const nlohmann::json& record);

  const experiment& experiment_;
  nlohmann::json context_;
  std::vector<case_state> cases_;

  std::map<std::uint64_t, round_runs> rounds_;   // by the number of the first run
  std::map<std::uint64_t, machine_rates> rates_; // by round
  std::map<std::string, std::string> kernel_choices_, sums_;
  std::uint64_t last_ = 0;
};

} // namespace regatta
