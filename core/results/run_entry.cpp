// SPDX-License-Identifier: Apache-2.0
#include "results/run_entry.hpp"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "results/hosts_entry.hpp"
#include "results/inference.hpp"
#include "results/statistics.hpp"
#include "results/time_to_target.hpp"

namespace regatta {
namespace {

using nlohmann::json;

constexpr std::size_t most_samples = 1000; // keeps the file readable; records.jsonl has all

// By worker: the numbers of the steps, and the duration of each.
json steps_entry(const run_figures& run) {
  json numbers = json::array(), seconds = json::array();
  for (const std::vector<double>& steps : run.step_seconds) {
    const std::vector<std::size_t> kept = thinned(steps.size(), most_samples);
    json& of_worker = seconds.emplace_back(json::array());
    for (const std::size_t s : kept) of_worker.push_back(steps[s]);
    numbers.push_back(kept);
  }
  return {{"steps", numbers}, {"per_rank", seconds}};
}

json strategy_entry(const strategy_records& strategy) {
  json j = json::object();
  for (const auto& [name, seen] : strategy.counts)
    for (const auto& [value, times] : seen) j[one_line(name)]["counts"][std::to_string(value)] = times;
  for (const auto& [name, sum] : strategy.sums) j[one_line(name)]["per_step"] = sum;
  return j.empty() ? json(nullptr) : j;
}

} // namespace

json or_null(const std::optional<double>& value) {
  return value ? json(*value) : json(nullptr);
}

json loss_entry(const run_figures& run) {
  if (run.losses.empty()) return nullptr;
  json j = {{"first", run.losses.front()}, {"last", run.losses.back()}};
  for (const char* member : {"steps", "curve", "seconds"}) j[member] = json::array();
  for (const std::size_t i : thinned(run.losses.size(), most_samples)) {
    j["steps"].push_back(run.loss_steps.at(i));
    j["curve"].push_back(run.losses[i]);
    j["seconds"].push_back(or_null(run.loss_seconds.at(i)));
  }
  return j;
}

json metric_curve(const run_figures& run) {
  json curve = json::array();
  for (std::size_t i = 0; i < run.metric_curve.size(); ++i)
    curve.push_back({{"step", run.metric_curve[i].first},
                     {"value", run.metric_curve[i].second},
                     {"seconds", or_null(run.metric_seconds.at(i))},
                     {"training_seconds", run.metric_training_seconds.at(i)}});
  return curve;
}

json memory_entry(const std::vector<const run_figures*>& runs) {
  json j = json::array();
  for (std::size_t rank = 0; rank < runs.front()->memory_peak_bytes.size(); ++rank) {
    std::uint64_t most = 0; // 0: unknown
    for (const run_figures* run : runs)
      if (rank < run->memory_peak_bytes.size()) most = std::max(most, run->memory_peak_bytes[rank]);
    j.push_back(most == 0 ? json(nullptr) : json(most));
  }
  return j;
}

json gpu_entry(const std::vector<const run_figures*>& runs) {
  json j = json::array();
  bool any = false;
  for (std::size_t rank = 0; rank < runs.front()->gpus.size(); ++rank) {
    std::vector<gpu_figures> gpus;
    for (const run_figures* run : runs)
      if (rank < run->gpus.size() && run->gpus[rank]) gpus.push_back(*run->gpus[rank]);
    any = any || !gpus.empty();
    j.push_back(gpus.empty() ? json(nullptr) : to_json(over_runs(gpus)));
  }
  return any ? j : json(nullptr);
}

std::optional<double> evaluation_seconds(const run_figures& run) {
  return run.metric_value ? std::optional(run.evaluation_seconds) : std::nullopt;
}

json run_entry(const run_figures& run, const measure_config& m) {
  const auto to_target = time_to_target_of(m, run);
  return {
      {"samples", run.samples},
      {"units", or_null(run.units)},
      {"counted_steps", run.counted_steps},
      {"region_seconds", run.region_seconds},
      {"samples_per_second", run.samples_per_second},
      {"samples_per_worker_step", run.samples_per_worker_step},
      {"step_seconds", steps_entry(run)},
      {"time", time_entry(run.time)},
      {"hosts", places_entry(run)},
      {"clocks", clocks_entry({&run})},
      {"stragglers", stragglers_entry({&run})},
      {"communication_total", run.communication_seconds},
      {"server_update", or_null(run.server_update_seconds)},
      {"drain_seconds", run.drain_seconds},
      {"bytes",
       {{"sent_per_step", {{"worker", or_null(run.worker_sent_bytes)}, {"server", or_null(run.server_sent_bytes)}}},
        {"received_per_step",
         {{"worker", or_null(run.worker_received_bytes)}, {"server", or_null(run.server_received_bytes)}}}}},
      {"strategy", strategy_entry(run.strategy)},
      {"transport_counters", run.transport_counters},
      {"memory_peak_bytes", memory_entry({&run})},
      {"cpu_seconds", run.cpu_seconds},
      {"gpu", gpu_entry({&run})},
      {"steal", or_null(run.steal)},
      {"run_queue", or_null(run.run_queue)},
      {"loss", loss_entry(run)},
      {"metric", run.metric_value
                     ? json{{"name", one_line(run.metric)}, {"value", *run.metric_value}, {"curve", metric_curve(run)}}
                     : json(nullptr)},
      {"steps_to_target", to_target ? json(to_target->steps) : json(nullptr)},
      {"seconds_to_target", to_target ? json(to_target->seconds) : json(nullptr)},
      {"evaluation_seconds", or_null(evaluation_seconds(run))},
      {"skipped_records", run.skipped_records},
      {"weights_moved", run.weights_moved ? json(*run.weights_moved) : json(nullptr)},
      {"given_bytes", run.given_bytes},
      {"replicas_identical", run.replicas_identical ? json(*run.replicas_identical) : json(nullptr)},
      {"weights_sha256", run.weights_hash.empty() ? json(nullptr) : json(run.weights_hash)}};
}

json figure_entry(const std::vector<double>& values) {
  const auto i = median_interval(values);
  if (!i) return nullptr;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return {{"n", values.size()}, {"median", i->estimate}, {"min", *least},          {"max", *most},
          {"low", i->low},      {"high", i->high},       {"coverage", i->coverage}};
}

json ratio_entry(const std::vector<double>& ratios) {
  json j = figure_entry(ratios);
  if (j.is_null()) return j;
  std::vector<double> logs;
  for (const double ratio : ratios) logs.push_back(std::log(ratio));
  const auto spread = deviation(logs);
  j["smallest_detectable"] = spread ? json(std::expm1(smallest_detectable(*spread, logs.size()))) : json(nullptr);
  return j;
}

} // namespace regatta
