// SPDX-License-Identifier: Apache-2.0
#include "results/time_to_target.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "measure/target.hpp"
#include "results/run_entry.hpp"

namespace regatta {
namespace {

using nlohmann::json;

constexpr double not_reached = 1e300; // finite, because quantiles are interpolated
constexpr double unknown = 1e299;     // not below: the value itself, or interpolated between it and another one

// The order statistics of figure_entry() also hold for values of which it is only known that they are larger than the
// others.
json censored_figure(const std::vector<double>& values) {
  if (std::ranges::all_of(values, [](double v) { return v == not_reached; })) return nullptr;
  json j = figure_entry(values);
  for (json& member : j)
    if (member.is_number_float() && member.get<double>() >= unknown) member = nullptr;
  return j;
}

} // namespace

std::optional<time_to_target> time_to_target_of(const measure_config& m, const run_figures& run) {
  for (std::size_t i = 0; i < run.metric_curve.size(); ++i)
    if (reaches_target(m, run.metric, run.metric_curve[i].second))
      return time_to_target{run.metric_curve[i].first, run.metric_training_seconds.at(i)};
  return std::nullopt;
}

void add_time_to_target(json& entry, const measure_config& m, const std::vector<repeat_figures>& repeats) {
  if (m.target == 0) return;
  std::vector<double> steps, seconds;
  std::size_t reached = 0;
  for (const repeat_figures& r : repeats) {
    const auto t = time_to_target_of(m, r.run);
    reached += t.has_value();
    steps.push_back(t ? static_cast<double>(t->steps) : not_reached);
    seconds.push_back(t ? t->seconds : not_reached);
  }
  const std::string& metric = repeats.front().run.metric;
  entry["target"] = {{"metric", metric.empty() ? json(nullptr) : json(one_line(metric))},
                     {"value", m.target},
                     {"side", target_is_upper_bound(m, metric) ? "at_most" : "at_least"},
                     {"reached", reached}};
  entry["steps_to_target"] = censored_figure(steps);
  entry["seconds_to_target"] = censored_figure(seconds);
}

} // namespace regatta
