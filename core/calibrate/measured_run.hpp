// SPDX-License-Identifier: Apache-2.0
//
// Runs of cases on this machine, whose times `regatta calibrate` turns into a machine file.
#pragma once

#include "campaign/campaign.hpp"
#include "campaign/prepare.hpp"
#include "experiment/experiment.hpp"
#include "measure/rank_record.hpp"
#include "results/statistics.hpp"
#include "timeline/rank_trace.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace regatta {

constexpr int calibration_rounds = 3; // of measurements that are compared with each other: this machine may change

struct measured_run {
  std::vector<rank_record> ranks;
  std::vector<rank_trace> traces;
};

// The context of runs: the experiment of the cases, the facts about plugins, and a function that shows the progress.
struct measuring {
  plugin_facts_cache& answers;
  const experiment& e;
  std::function<void(const progress&)> show;
};

// [main] Returns the experiment with this case alone: one repeat without baselines, with a trace of so many steps.
experiment only(const experiment& e, case_config c, std::int64_t traced_steps = 0);

// [main] Runs a case once. Throws failure as a run does, also (interrupted).
measured_run run_once(const measuring& by, const case_config& c, std::int64_t traced_steps = 0);

// Returns the mean of a part of the steps of all workers, in ns.
template <class Part> double mean_of(const measured_run& r, Part part) {
  double sum = 0, count = 0;
  for (const rank_record& rank : r.ranks)
    for (const step_time& s : rank.steps) {
      sum += static_cast<double>(part(s));
      ++count;
    }
  return count > 0 ? sum / count : 0;
}

// The same for several runs: the median over the runs.
template <class Part> double mean_of(const std::vector<measured_run>& runs, Part part) {
  std::vector<double> means;
  for (const measured_run& r : runs) means.push_back(mean_of(r, part));
  return median(means).value_or(0);
}

inline double computing(const step_time& s) {
  return static_cast<double>(s.forward + s.backward);
}

} // namespace regatta
