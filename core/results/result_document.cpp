// SPDX-License-Identifier: Apache-2.0
#include "results/result_document.hpp"

#include "results/case_entry.hpp"
#include "results/disturbance.hpp"
#include "results/sampling.hpp"
#include "text/values.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace regatta {

using nlohmann::json;

namespace {

// Says how well the compared figure is known, and why there are no more repeats.
void add_sampling(json& entry, const case_config& config, const campaign_records::case_state& c) {
  const auto half_width = relative_half_width(compared_figure(config, c));
  entry["sampling"] = {{"precision", config.measure.precision},
                       {"half_width", half_width ? json(*half_width) : json(nullptr)},
                       {"length", c.length},
                       {"ended", c.ended.empty() ? json(nullptr) : json(c.ended)}};
  if (c.ended == "budget" || c.ended == "limit")
    entry["warnings"].push_back(fmt::format(
        "precision: {} before the figure was known to {:g} %",
        c.ended == "budget" ? fmt::format("measure.budget of {} was spent", exact_nanoseconds(config.measure.budget))
                            : fmt::format("there were {} repeats", most_rounds),
        100 * config.measure.precision));
}

} // namespace

result_document::result_document(const experiment& e, campaign_records& records)
    : experiment_(e), records_(records), cases_(e.cases.size()) {}

void result_document::update(const json& record) {
  const std::string kind = record.at("kind");
  if (kind == "failure" || kind == "sampling") update_case(record.at("index"));
  if (kind == "run")
    for (const std::size_t index : records_.cases_of(record.at("round"))) update_case(index);
}

void result_document::update_case(std::size_t index) {
  case_result& result = cases_.at(index);
  const campaign_records::case_state& c = records_.of_case(index);
  if (result.complete) return;
  const case_config& config = experiment_.cases.at(index);
  const auto usual = usual_rates(records_.rates());
  std::vector<repeat_figures> repeats;
  for (const auto& [number, repeat] : c.repeats)
    if (repeat.complete()) {
      repeats.push_back(repeat.figures);
      repeats.back().machine = records_.rates_of(repeat.figures.round);
      repeats.back().disturbed = disturbances(repeat.figures, repeats.back().machine, usual);
    }
  std::string status = "ok", error;
  if (!c.failure.is_null()) {
    status = c.failure.at("status");
    error = c.failure.at("error");
  } else if (repeats.empty()) {
    return; // the first repeat waits for the runs that it is compared with
  } else if (!records_.complete(index)) {
    status = "partial";
    error = config.measure.precision > 0
                ? fmt::format("{} repeats, not yet known to {:g} %", repeats.size(), 100 * config.measure.precision)
                : fmt::format("{} of {} repeats", repeats.size(), config.measure.repeats);
  }
  result.entry = case_entry(config, c.facts, status, error, repeats);
  if (config.measure.precision > 0 && !repeats.empty()) add_sampling(result.entry, config, c);
  if (c.failure.is_object() && c.failure.contains("dump")) result.entry["dump"] = c.failure["dump"];
  result.complete = status == "ok";
  if (result.complete) records_.release(index);
}

std::size_t result_document::finished_cases() const {
  return static_cast<std::size_t>(
      std::count_if(cases_.begin(), cases_.end(), [](const case_result& c) { return c.complete; }));
}

json result_document::document() const {
  json results = json::array();
  for (const case_result& c : cases_)
    if (!c.entry.is_null()) results.push_back(c.entry);
  const bool simulated =
      std::ranges::any_of(results, [](const json& entry) { return entry.value("simulated", false); });
  json document = {{"schema", "regatta.result/1"}, {"context", records_.context()}, {"results", std::move(results)}};
  if (simulated) document["simulated"] = true;
  return document;
}

} // namespace regatta
