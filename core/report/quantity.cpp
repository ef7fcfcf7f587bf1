// SPDX-License-Identifier: Apache-2.0
#include "report/quantity.hpp"

#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "report/fields.hpp"

namespace regatta {
namespace {

using nlohmann::json;

struct known_quantity {
  const char* path; // applies to all paths below it, too
  const char *unit, *scope;
};

// docs/measurement.md has the formulas. A path must come before its own prefixes.
constexpr known_quantity known[] = {
    {"samples_per_second.cv", "ratio", "global"},
    {"samples_per_second", "samples/s", "global"},
    {"throughput", "", "global"}, // the unit is the model's, which the entry states
    {"batches_per_second", "batches/s", "rank"},
    {"step_seconds", "s", "rank"},
    {"baseline_samples_per_second", "samples/s", "global"},
    {"speedup", "ratio", "global"},
    {"efficiency", "ratio", "global"},
    {"noise", "ratio", "global"},
    {"contention", "ratio", "global"},
    {"efficiency_over_contention", "ratio", "global"},
    {"undisturbed.samples_per_second", "samples/s", "global"},
    {"undisturbed.efficiency", "ratio", "global"},
    {"time", "s/step", "rank"},
    {"lost", "ratio", "rank"},
    {"communication_total", "s/step", "rank"},
    {"server_update", "s/step", "rank"},
    {"drain_seconds", "s", "global"},
    {"bytes", "B/step", "rank"},
    {"given_bytes", "B", "global"},
    {"memory_peak_bytes", "B", "rank"},
    {"cpu_seconds", "s", "rank"},
    {"loss", "loss", "global"},
    {"target.reached", "repeats", "global"},
    {"steps_to_target", "steps", "global"},
    {"seconds_to_target", "s", "global"},
    {"evaluation_seconds", "s", "global"},
    {"skipped_records", "records", "global"},
    {"workers", "workers", "global"},
    {"servers", "servers", "global"},
    {"threads", "threads", "rank"},
    {"batch_per_worker", "samples", "rank"},
    {"global_batch", "samples", "global"},
    {"parameters", "parameters", "global"},
    {"table_parameters", "parameters", "global"},
};

bool lies_at(const std::string& path, const std::string& top) {
  return path == top || path.starts_with(top + ".");
}

// For example "strategy.exchanged_bytes.per_step". A strategy chooses its names freely; the end of a name tells the
// unit.
quantity reported(const std::string& path) {
  const bool per_step = path.ends_with(".per_step");
  const std::string name = path.substr(0, path.rfind('.'));
  const std::string unit = name.ends_with("seconds") ? "s" : name.ends_with("bytes") ? "B" : "as reported";
  return {unit + (per_step ? "/step" : ""), per_step ? "rank" : "global"};
}

} // namespace

quantity quantity_of(const json& entry, const std::string& path) {
  const std::string top = path.substr(0, path.find('.'));
  const json own = entry.value(top, json());
  if (path.ends_with(".n") && own.is_object()) return {"repeats", "global"};
  if (path.ends_with(".coverage") && own.is_object()) return {"ratio", "global"};
  if (top == "strategy" && own.is_object()) return reported(path);
  if (top == "metric" && own.is_object())
    return {path == "metric.curve" ? "as reported" : plain_text(own.value("name", json("metric"))), "global"};
  if (path == "target.value" && own.is_object())
    return {plain_text(own.value("metric", json("metric"))), "global"}; // as the metric itself
  quantity q{"none", "global"};
  for (const known_quantity& k : known)
    if (lies_at(path, k.path)) {
      q = {k.unit, k.scope};
      break;
    }
  if (own.is_object() && own.contains("unit") && q.unit != "ratio") q.unit = plain_text(own["unit"]);
  if (own.is_object() && own.contains("scope")) q.scope = plain_text(own["scope"]);
  return q;
}

json with_report(json result) {
  const json experiment = result.at("context").value("experiment", json::object());
  const std::string path = experiment.value("report", json::object()).value("value", "");
  if (path.empty()) return result;
  const json& whole = result;
  for (json& entry : result["results"]) {
    const quantity q = quantity_of(entry, path);
    entry["report"] = {{"path", path},
                       {"value", has_figures(entry) ? field(whole, entry, path) : json()},
                       {"unit", q.unit.empty() ? json() : json(q.unit)},
                       {"scope", q.scope}};
  }
  return result;
}

} // namespace regatta
