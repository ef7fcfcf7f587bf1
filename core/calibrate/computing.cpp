// SPDX-License-Identifier: Apache-2.0
#include "calibrate/computing.hpp"

#include "base/failure.hpp"
#include "calibrate/traced_times.hpp"
#include "simulate/fit.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

namespace regatta {

void add_computing(machine_file& m, const std::vector<measured_run>& alone, const plugin_facts& facts,
                   const std::vector<simulated_tensor>& tensors, const simulated_tables& tables) {
  std::vector<std::string> names;
  double bytes = 0;
  for (const simulated_tensor& t : tensors) {
    names.push_back(t.name);
    bytes +=
        static_cast<double>(std::accumulate(t.shape.begin(), t.shape.end(), std::int64_t{1}, std::multiplies<>())) *
        sizeof(float);
  }
  const measured_run& first = alone.front();
  if (first.traces.empty()) throw failure(exit_code::run, "the baseline wrote no trace");
  traced_times traced = times_in_trace(first.traces.front(), names);
  m.batch = static_cast<double>(facts.model.batch_per_worker);
  // The tensors' medians are scaled to the means of all timed steps: a rate is a mean.
  const double forward = mean_of(alone, [](const step_time& s) { return s.forward; });
  const double backward = mean_of(alone, [](const step_time& s) { return s.backward; }) - traced.after;
  double forwards = 0, backwards = 0;
  for (const tensor_times& t : traced.tensors) forwards += t.forward, backwards += t.backward;
  for (tensor_times& t : traced.tensors) {
    if (forwards > 0) t.forward *= forward / forwards;
    if (backwards > 0) t.backward *= std::max(0.0, backward) / backwards;
  }
  m.tensors = std::move(traced.tensors);
  m.input_ns = mean_of(alone, [](const step_time& s) { return s.input; });
  // With sparse tables, the passes end with the gradients of rows; a model without other tensors has nothing but these.
  if (!tables.all.empty()) m.after_ns = tensors.empty() ? mean_of(alone, computing) : traced.after;
  m.other_ns = (tables.all.empty() ? traced.after : 0) + mean_of(alone, [](const step_time& s) {
                 return s.end - s.begin - s.input - s.forward - s.backward - s.update;
               });
  std::vector<double> steps;
  for (const step_time& s : first.ranks.front().steps) steps.push_back(computing(s));
  m.variation = variation(steps).value_or(0);
  if (steps.size() > 1) m.quantiles = relative_quantiles(steps);
  const double update = mean_of(alone, [](const step_time& s) { return s.update; });
  constexpr double bytes_of_update = 5; // the engine counts so many for each byte of a gradient
  double rows = 0;                      // bytes of their values in a step
  const std::vector<std::uint64_t>& touched = first.ranks.front().touched_rows;
  for (std::size_t t = 0; t < std::min(touched.size(), tables.all.size()); ++t) {
    touched_table& of = m.tables.emplace_back();
    of.name = tables.all[t].name;
    of.batch = m.batch;
    of.rows = static_cast<double>(touched[t]) / static_cast<double>(std::max<std::size_t>(steps.size(), 1));
    rows += of.rows * static_cast<double>(tables.all[t].row) * sizeof(float);
  }
  // One time for both: the engine measures the updates of dense weights and of rows together, and the rows' reading.
  const double all = bytes_of_update * bytes + (bytes_of_update + (tables.in_place ? 0 : 3)) * rows;
  if (all > 0) m.work_of["apply"] = update / all;
  if (rows > 0) m.work_of["rows_apply"] = m.work_of["rows_read"] = update / all;
}

void add_contention(machine_file& m, const measuring& by, const case_config& alone) {
  const auto update = [](const step_time& s) { return static_cast<double>(s.update); };
  m.contention = m.operation_contention = {{1, 1}};
  for (std::int64_t workers = 2; workers <= static_cast<std::int64_t>(m.cores); workers *= 2) {
    case_config control = contention_of(alone);
    control.cluster.workers = workers;
    if (alone.train.scaling == "strong") control.train.batch *= workers; // a worker's batch stays the same
    std::vector<double> slowdowns, of_updates;
    for (calibration_rounds rounds; rounds.next(standard_error(slowdowns));) {
      const measured_run one = run_once(by, alone), all = run_once(by, control);
      slowdowns.push_back(mean_of(all, computing) / mean_of(one, computing));
      if (mean_of(one, update) > 0) of_updates.push_back(mean_of(all, update) / mean_of(one, update));
    }
    m.contention.emplace_back(static_cast<double>(workers), std::max(1.0, median(slowdowns).value_or(1)));
    m.operation_contention.emplace_back(static_cast<double>(workers), std::max(1.0, median(of_updates).value_or(1)));
  }
}

} // namespace regatta
