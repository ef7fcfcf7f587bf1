// SPDX-License-Identifier: Apache-2.0
#include "results/result_document.hpp"

#include "results/case_entry.hpp"
#include "results/disturbance.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace regatta {

using nlohmann::json;

result_document::result_document(const experiment& e, campaign_records& records)
    : experiment_(e), records_(records), cases_(e.cases.size()) {}

void result_document::update(const json& record) {
  const std::string kind = record.at("kind");
  if (kind == "failure") update_case(record.at("index"));
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
      repeats.back().machine = records_.rates_of(repeat.round);
      repeats.back().disturbed = disturbances(repeat.figures, repeats.back().machine, usual);
    }
  std::string status = "ok", error;
  if (!c.failure.is_null()) {
    status = c.failure.at("status");
    error = c.failure.at("error");
  } else if (repeats.empty()) {
    return; // the first repeat waits for the runs that it is compared with
  } else if (repeats.size() < static_cast<std::size_t>(config.measure.repeats)) {
    status = "partial";
    error = fmt::format("{} of {} repeats", repeats.size(), config.measure.repeats);
  }
  result.entry = case_entry(config, c.facts, status, error, repeats);
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
  return {{"schema", "regatta.result/1"}, {"context", records_.context()}, {"results", std::move(results)}};
}

} // namespace regatta
