// SPDX-License-Identifier: Apache-2.0
#include "results/case_entry.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/text.hpp"
#include "results/efficiency.hpp"
#include "results/entry_members.hpp"
#include "results/hosts_entry.hpp"
#include "results/run_entry.hpp"
#include "results/statistics.hpp"
#include "results/time_to_target.hpp"

namespace regatta {
namespace {

using nlohmann::json;

// Warnings contain no exact figures, so that equal warnings of many cases are joined into one line.
constexpr double spread_worth_a_warning = 0.05;
constexpr double steal_worth_a_warning = 0.02;

// Returns one number of every repeat; repeats without it are left out. `get` is a member of run_figures, or a function.
template <class Get> std::vector<double> over(const std::vector<repeat_figures>& repeats, Get get) {
  std::vector<double> values;
  for (const repeat_figures& r : repeats)
    if (const std::optional<double> value = std::invoke(get, r.run)) values.push_back(*value);
  return values;
}

json rate_entry(const std::vector<double>& rates) {
  json j = figure_entry(rates);
  j.update({{"unit", "samples/s"}, {"scope", "global"}, {"cv", or_null(variation(rates))}, {"repeats", rates}});
  return j;
}

json step_entry(const std::vector<repeat_figures>& repeats) {
  std::vector<double> all;
  for (const repeat_figures& r : repeats)
    for (const std::vector<double>& steps : r.run.step_seconds) all.insert(all.end(), steps.begin(), steps.end());
  return {{"median", or_null(median(all))},
          {"p10", or_null(quantile(all, 0.1))},
          {"p90", or_null(quantile(all, 0.9))},
          {"p99", or_null(quantile(all, 0.99))}};
}

json machine_entry(const std::optional<machine_rates>& m) {
  if (!m) return nullptr;
  return {{"fma", m->fma},
          {"copy", m->copy},
          {"line_round_trip_seconds", or_null(m->line_round_trip_seconds)},
          {"clock_hz", or_null(m->clock_hz)}};
}

json repeats_entry(const measure_config& m, const std::vector<repeat_figures>& repeats) {
  const auto entry_of = [&](const std::optional<run_figures>& run) { return run ? run_entry(*run, m) : json(nullptr); };
  json j = json::array();
  for (const repeat_figures& r : repeats)
    j.push_back({{"round", r.round},
                 {"case", run_entry(r.run, m)},
                 {"baseline", entry_of(r.baseline)},
                 {"baseline_again", entry_of(r.baseline_again)},
                 {"contention", entry_of(r.contention)},
                 {"machine", machine_entry(r.machine)},
                 {"disturbed", r.disturbed}});
  return j;
}

json time_entry(const std::vector<repeat_figures>& repeats, const std::vector<double>& rates) {
  std::vector<time_parts> chosen;
  for (const std::size_t i : middle(rates)) chosen.push_back(repeats[i].run.time);
  return time_entry(mean_parts(chosen));
}

// True only if the workers of every repeat ended with the same weights; null if they need not or it is unknown.
json replicas_entry(const case_config& config, const case_facts& facts, const std::vector<repeat_figures>& repeats) {
  if (config.strategy.id == "none") return nullptr;
  bool identical = true;
  for (const repeat_figures& r : repeats) {
    if (!r.run.replicas_identical || !(facts.synchronous || r.run.must_agree)) return nullptr;
    identical = identical && *r.run.replicas_identical;
  }
  return identical;
}

// False if the weights of a repeat did not change though they should have; null if none had to.
json moved_entry(const std::vector<repeat_figures>& repeats) {
  json moved = nullptr;
  for (const repeat_figures& r : repeats)
    if (r.run.weights_moved) moved = *r.run.weights_moved && moved != false;
  return moved;
}

// "conv1: jit_wino" per line -> {"conv1": "jit_wino"}
json kernels_entry(const std::string& text) {
  if (text.empty()) return nullptr;
  json j = json::object();
  for (const std::string& line : lines_of(text)) {
    if (line.empty()) continue;
    const std::size_t colon = line.find(": ");
    j[one_line(line.substr(0, colon))] = colon == std::string::npos ? "" : one_line(line.substr(colon + 2));
  }
  return j;
}

// The strategy's records. Counts are summed over all repeats.
json strategy_entry(const std::vector<repeat_figures>& repeats) {
  json j = json::object();
  std::map<std::string, std::map<std::int64_t, std::uint64_t>> counts;
  std::map<std::string, std::vector<double>> sums;
  for (const repeat_figures& r : repeats) {
    for (const auto& [name, seen] : r.run.strategy.counts)
      for (const auto& [value, times] : seen) counts[name][value] += times;
    for (const auto& [name, sum] : r.run.strategy.sums) sums[name].push_back(sum);
  }
  for (const auto& [name, seen] : counts) {
    json by_value = json::object();
    double sum = 0, times = 0;
    for (const auto& [value, n] : seen) {
      by_value[std::to_string(value)] = n;
      sum += static_cast<double>(value) * static_cast<double>(n);
      times += static_cast<double>(n);
    }
    j[one_line(name)] = {{"counts", by_value}, {"mean", sum / times}, {"max", seen.rbegin()->first}};
  }
  for (const auto& [name, values] : sums) j[one_line(name)]["per_step"] = or_null(median(values));
  return j.empty() ? json(nullptr) : j;
}

// The figures without disturbed repeats; null if there is none of them, or nothing else.
json undisturbed_entry(const case_config& config, const std::vector<repeat_figures>& repeats) {
  std::vector<double> rates, efficiencies;
  for (const repeat_figures& r : repeats) {
    if (!r.disturbed.empty()) continue;
    rates.push_back(r.run.samples_per_second);
    if (r.baseline) efficiencies.push_back(efficiency_of(config, r));
  }
  if (rates.empty() || rates.size() == repeats.size()) return nullptr;
  return {{"n", rates.size()},
          {"samples_per_second", or_null(median(rates))},
          {"efficiency", or_null(median(efficiencies))}};
}

json cpu_entry(const std::vector<repeat_figures>& repeats) {
  json j = json::array();
  for (std::size_t rank = 0; rank < repeats.front().run.cpu_seconds.size(); ++rank)
    j.push_back(or_null(median(over(repeats, [&](const run_figures& run) -> std::optional<double> {
      if (rank >= run.cpu_seconds.size()) return std::nullopt;
      return run.cpu_seconds[rank];
    }))));
  return j;
}

json warnings_of(const case_facts& facts, const std::vector<repeat_figures>& repeats) {
  std::vector<std::string> warnings;
  std::vector<double> baselines; // samples/s
  const auto add = [&](const std::string& text) {
    if (std::find(warnings.begin(), warnings.end(), text) == warnings.end()) warnings.push_back(text);
  };
  for (const std::string& w : facts.warnings) add(w);
  if (const auto text = build_warning()) add(*text);
  const auto check_spread = [&](const char* of, const std::vector<double>& rates) {
    const auto cv = variation(rates);
    if (cv && *cv > spread_worth_a_warning)
      add(fmt::format("spread: samples/s of {} differ by more than {:g} % between repeats", of,
                      100 * spread_worth_a_warning));
  };
  for (const repeat_figures& r : repeats)
    if (r.baseline) baselines.push_back(r.baseline->samples_per_second);
  check_spread("the case", over(repeats, &run_figures::samples_per_second));
  check_spread("its baseline", baselines);
  double steal = 0;
  for (const repeat_figures& r : repeats) {
    for (const std::string& w : r.run.warnings) add(w);
    for (const run_figures* run : {&r.run, r.baseline ? &*r.baseline : nullptr})
      if (run && run->steal) steal = std::max(steal, *run->steal);
  }
  const auto disturbed = std::ranges::count_if(repeats, [](const repeat_figures& r) { return !r.disturbed.empty(); });
  if (disturbed > 0)
    add(fmt::format("disturbed: {} of {} repeats, which stay in the figures", disturbed, repeats.size()));
  if (const auto skipped = repeats.front().run.skipped_records; skipped > 0)
    add(fmt::format("skipped {} damaged {} of the data", skipped, skipped == 1 ? "record" : "records"));
  for (const repeat_figures& r : repeats)
    if (!r.run.clocks.reason.empty())
      add(fmt::format("wait and exposed_communication are not told apart: {}", r.run.clocks.reason));
  if (steal > steal_worth_a_warning)
    add(fmt::format("steal: the hypervisor gave {:.0f} % of the CPU time to others", 100 * steal));
  return warnings;
}

void add_measured(json& entry, const case_config& config, const case_facts& facts,
                  const std::vector<repeat_figures>& repeats) {
  const auto median_of = [&](auto get) { return or_null(median(over(repeats, get))); };
  const run_figures& first = repeats.front().run;
  const std::vector<double> rates = over(repeats, &run_figures::samples_per_second);
  entry["samples_per_second"] = rate_entry(rates);
  // A model whose samples are sentences counts its tokens too; its unit decides whether throughput is in tokens.
  const std::string unit = first.counts_tokens ? "tokens" : facts.model.unit;
  const bool counted = unit == "tokens" || unit == "words";
  const auto units = counted ? over(repeats, &run_figures::units_per_second) : std::vector<double>();
  entry["throughput"] = figure_entry(units.empty() ? rates : units);
  entry["throughput"].update({{"unit", one_line(unit) + "/s"}, {"scope", "global"}});
  entry["batches_per_second"] = median_of(&run_figures::batches_per_second);
  entry["step_seconds"] = step_entry(repeats);
  entry["time"] = time_entry(repeats, rates);
  entry["communication_total"] = median_of(&run_figures::communication_seconds);
  entry["server_update"] = median_of(&run_figures::server_update_seconds);
  entry["drain_seconds"] = median_of(&run_figures::drain_seconds);
  entry["bytes"] = {
      {"sent_per_step",
       {{"worker", median_of(&run_figures::worker_sent_bytes)},
        {"server", median_of(&run_figures::server_sent_bytes)}}},
      {"received_per_step",
       {{"worker", median_of(&run_figures::worker_received_bytes)},
        {"server", median_of(&run_figures::server_received_bytes)}}},
  };
  entry["strategy"] = strategy_entry(repeats);
  std::vector<const run_figures*> runs;
  for (const repeat_figures& r : repeats) runs.push_back(&r.run);
  entry["hosts"] = places_entry(first);
  entry["clocks"] = clocks_entry(runs);
  entry["stragglers"] = stragglers_entry(runs);
  entry["memory_peak_bytes"] = memory_entry(runs);
  entry["cpu_seconds"] = cpu_entry(repeats);
  entry["gpu"] = gpu_entry(runs);
  // Every repeat starts with the same weights and samples, so one curve represents all; but a repeat with a loss that
  // is not finite is preferred, so that it shows.
  const auto worst = std::find_if(repeats.begin(), repeats.end(), [](const auto& r) { return !r.run.loss_finite; });
  entry["loss"] = loss_entry(worst == repeats.end() ? first : worst->run);
  if (first.metric_value)
    entry["metric"] = {{"name", one_line(first.metric)},
                       {"value", median_of(&run_figures::metric_value)},
                       {"curve", metric_curve(first)}};
  add_time_to_target(entry, config.measure, repeats);
  entry["evaluation_seconds"] = median_of(evaluation_seconds);
  entry["skipped_records"] = first.skipped_records;
  entry["replicas_identical"] = replicas_entry(config, facts, repeats);
  entry["weights_sha256"] = json::array();
  for (const auto& r : repeats)
    entry["weights_sha256"].push_back(r.run.weights_hash.empty() ? json() : json(r.run.weights_hash));
  entry["weights_moved"] = moved_entry(repeats);
  std::uint64_t given_bytes = first.given_bytes;
  for (const auto& r : repeats) given_bytes = std::min(given_bytes, r.run.given_bytes);
  entry["given_bytes"] = given_bytes;
  entry["kernels"] = kernels_entry(first.kernels);
  entry["undisturbed"] = undisturbed_entry(config, repeats);
  entry["repeats"] = repeats_entry(config.measure, repeats);
}

// Removes what a simulation does not know: processor time and memory of ranks, and tokens of batches.
void remove_unknown(json& entry) {
  for (const char* member : {"communication_total", "server_update", "memory_peak_bytes", "cpu_seconds", "gpu",
                             "metric", "evaluation_seconds", "weights_sha256", "undisturbed"})
    entry[member] = nullptr;
  const std::string unit = entry["throughput"].value("unit", "");
  if (unit == "tokens/s" || unit == "words/s") entry["throughput"] = nullptr;
}

// Fills everything that is known before a case runs; the rest is null.
json entry_of(const case_config& config, const case_facts& facts) {
  json swept = json::object();
  for (const auto& [key, value] : config.swept) swept[key] = value;
  json entry = json::object();
  for (const char* member : entry_members) entry[member] = nullptr;
  entry["case"] = swept;
  entry["workers"] = config.cluster.workers;
  entry["servers"] = facts.servers;
  entry["threads"] = config.cluster.threads;
  entry["batch_per_worker"] = facts.model.batch_per_worker;
  entry["global_batch"] = facts.global_batch;
  entry["precision"] = config.train.precision;
  entry["lossy"] = facts.lossy;
  entry["simulated"] = !facts.simulated.empty();
  if (facts.model.parameters != 0) {
    entry["parameters"] = facts.model.parameters;
    entry["table_parameters"] = facts.model.table_parameters;
  }
  if (facts.model.flops_per_sample > 0) entry["flops_per_sample"] = facts.model.flops_per_sample;
  return entry;
}

} // namespace

json case_entry(const case_config& config, const case_facts& facts, const std::string& status, const std::string& error,
                const std::vector<repeat_figures>& repeats) {
  json entry = entry_of(config, facts);
  entry["status"] = status;
  if (!error.empty()) entry["error"] = error;
  if (repeats.empty()) {
    entry["fingerprint"] = fingerprint(config, facts, {});
    entry["warnings"] = facts.warnings;
    return entry;
  }
  const run_figures& first = repeats.front().run;
  entry["fingerprint"] = fingerprint(config, facts, first);
  entry["isa"] = text_or_null(first.isa);
  add_measured(entry, config, facts, repeats);
  add_efficiency(entry, config, repeats);
  if (!facts.simulated.empty()) remove_unknown(entry);
  entry["warnings"] = warnings_of(facts, repeats);
  if (status == "partial") entry["warnings"].push_back(status + ": " + error);
  return entry;
}

std::optional<std::string> build_warning() {
#ifdef NDEBUG
  return std::nullopt;
#else
  return "debug build: this program was not built for speed";
#endif
}

} // namespace regatta
