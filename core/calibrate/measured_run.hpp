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

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

namespace regatta {

// Rounds of measurements that are compared with each other, because this machine may change: at least three, and up to
// nine, which begin within a minute and a half, until their figures are precise.
class calibration_rounds {
public:
  // Returns true if another round shall begin. `error`: the standard error of the figures so far, in parts of a step.
  bool next(double error) {
    const bool more = begun_ < 3 || (begun_ < 9 && error > 0.01 && std::chrono::steady_clock::now() < end_);
    begun_ += more ? 1 : 0;
    return more;
  }
  bool first() const { return begun_ == 1; } // true during the first round

private:
  int begun_ = 0;
  const std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + std::chrono::seconds(90);
};

// Returns the standard error of the mean of these; 0 for fewer than two.
inline double standard_error(const std::vector<double>& of) {
  return deviation(of).value_or(0) / std::sqrt(static_cast<double>(std::max<std::size_t>(of.size(), 1)));
}

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
