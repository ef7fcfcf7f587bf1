// SPDX-License-Identifier: Apache-2.0
#include "results/efficiency.hpp"

#include <nlohmann/json.hpp>

#include "results/hosts_entry.hpp"
#include "results/run_entry.hpp"
#include "results/statistics.hpp"

namespace regatta {
namespace {

using nlohmann::json;

// The efficiency of a repeat that has a baseline, and the causes of its loss.
struct loss_of_time {
  double efficiency = 0;
  time_parts parts; // shares of a step; `other` makes them sum to 1 - efficiency
};

loss_of_time lost_in(const run_figures& run, const run_figures& baseline, double efficiency) {
  loss_of_time l;
  l.efficiency = efficiency;
  const double step = run.time.total();
  const double scale = run.samples_per_worker_step / baseline.samples_per_worker_step;
  for (const auto& [name, part] : time_part_names)
    l.parts.*part = (run.time.*part - scale * (baseline.time.*part)) / step;
  l.parts.other += 1 - l.efficiency - l.parts.total();
  return l;
}

} // namespace

double efficiency_of(const case_config& config, const repeat_figures& repeat) {
  return repeat.run.samples_per_second /
         (static_cast<double>(config.cluster.workers) * repeat.baseline->samples_per_second);
}

void add_efficiency(json& entry, const case_config& config, const std::vector<repeat_figures>& repeats) {
  const auto workers = static_cast<double>(config.cluster.workers);
  std::vector<loss_of_time> losses;
  std::vector<double> efficiencies, speedups, contentions, over_contentions, baselines, noise;
  for (const repeat_figures& r : repeats) {
    if (!r.baseline) continue;
    losses.push_back(lost_in(r.run, *r.baseline, efficiency_of(config, r)));
    efficiencies.push_back(losses.back().efficiency);
    speedups.push_back(losses.back().efficiency * workers);
    baselines.push_back(r.baseline->samples_per_second);
    if (r.baseline_again) noise.push_back(r.baseline_again->samples_per_second / r.baseline->samples_per_second);
    if (!r.contention) continue;
    contentions.push_back(r.contention->samples_per_second / (workers * r.baseline->samples_per_second));
    over_contentions.push_back(r.run.samples_per_second / r.contention->samples_per_second);
  }
  if (losses.empty()) return;
  entry["baseline_samples_per_second"] = figure_entry(baselines);
  entry["noise"] = ratio_entry(noise);
  entry["speedup"] = ratio_entry(speedups);
  entry["efficiency"] = ratio_entry(efficiencies);
  entry["contention"] = ratio_entry(contentions);
  entry["efficiency_over_contention"] = ratio_entry(over_contentions);
  std::vector<time_parts> chosen;
  for (const std::size_t i : middle(efficiencies)) chosen.push_back(losses[i].parts);
  json lost = time_entry(mean_parts(chosen));
  lost["compute"] = lost["forward"].get<double>() + lost["backward"].get<double>();
  lost.erase("forward");
  lost.erase("backward");
  entry["lost"] = std::move(lost);
}

} // namespace regatta
