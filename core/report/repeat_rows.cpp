// SPDX-License-Identifier: Apache-2.0
//
// The rows of `--format csv`: one for each repeat.
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "report/render.hpp"

namespace regatta {
namespace {

using nlohmann::json;

// Members with a value for each step or evaluation, or for each repeat. They are in result.json.
constexpr std::string_view left_out[] = {
    "step_seconds.per_rank", "step_seconds.steps", "counted_steps", "loss.curve", "loss.steps",
    "loss.seconds",          "metric.curve",       "repeats"};

// Returns an object without the members that are left out; `path` is its own path with a dot, or empty.
json without_samples(const json& object, const std::string& path = "") {
  json kept = json::object();
  for (const auto& [name, value] : object.items()) {
    const std::string inner = path + name;
    if (std::ranges::find(left_out, inner) != std::end(left_out) || name == "repeats") continue;
    json inside = value.is_object() ? without_samples(value, inner + ".") : value;
    if (!value.is_object() || !inside.empty() || value.empty()) kept[name] = std::move(inside);
  }
  return kept;
}

// Sets a ratio of samples/s of two runs of a repeat, divided by the workers; null if one of them is missing.
void set_ratio(json& run, const char* name, const json& of, const json& to, double workers) {
  run[name] =
      of.is_object() && to.is_object()
          ? json(of.at("samples_per_second").get<double>() / (workers * to.at("samples_per_second").get<double>()))
          : json();
}

// Returns the figures of a repeat: its own, and those that compare it with the other runs of its round.
json figures_of(const json& repeat, const json& entry) {
  json run = without_samples(repeat.at("case"));
  const json baseline = repeat.value("baseline", json()), contention = repeat.value("contention", json());
  const double workers = entry.at("workers");
  run["baseline_samples_per_second"] = baseline.is_object() ? baseline.at("samples_per_second") : json();
  set_ratio(run, "noise", repeat.value("baseline_again", json()), baseline, 1);
  set_ratio(run, "speedup", repeat.at("case"), baseline, 1);
  set_ratio(run, "efficiency", repeat.at("case"), baseline, workers);
  set_ratio(run, "contention", contention, baseline, workers);
  set_ratio(run, "efficiency_over_contention", repeat.at("case"), contention, 1);
  run["disturbed"] = repeat.value("disturbed", json());
  return run;
}

} // namespace

json repeat_rows(const json& result) {
  json rows = json::array();
  for (const json& entry : result.at("results")) {
    json row = without_samples(entry);
    const json repeats = entry.value("repeats", json());
    row["repeat"] = nullptr;
    if (!repeats.is_array() || repeats.empty()) {
      rows.push_back(std::move(row));
      continue;
    }
    for (std::size_t i = 0; i < repeats.size(); ++i) {
      row["repeat"] = i + 1;
      row["run"] = figures_of(repeats[i], entry);
      rows.push_back(row);
    }
  }
  return {{"results", std::move(rows)}};
}

} // namespace regatta
