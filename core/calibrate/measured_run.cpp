// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measured_run.hpp"

#include "base/failure.hpp"
#include "campaign/plugin_files.hpp"
#include "results/campaign_records.hpp"

#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace regatta {

using nlohmann::json;

experiment only(const experiment& e, case_config c, std::int64_t traced_steps) {
  experiment one = e;
  c.measure.repeats = 1;
  c.measure.precision = 0;
  c.measure.baseline = false;
  c.measure.trace = traced_steps;
  c.swept.clear();
  one.cases = {std::move(c)};
  return one;
}

measured_run run_once(const measuring& by, const case_config& c, std::int64_t traced_steps) {
  const experiment e = only(by.e, c, traced_steps);
  measured_run out;
  plugin_files files(by.answers.plugins());
  campaign_records records(e);
  records.add(campaign_record(json::object())); // a campaign looks there for its data
  std::string why;
  campaign_hooks hooks;
  hooks.progress = by.show;
  hooks.take_traces = [&](std::vector<json>& ranks, const std::vector<json>&) {
    for (json& rank : ranks)
      if (const auto trace = rank.find("trace"); trace != rank.end()) {
        out.traces.push_back(rank_trace_from(*trace));
        rank.erase(trace);
      }
  };
  hooks.record = [&](const json& record) {
    if (record.at("kind") == "run")
      for (const json& rank : record.at("ranks")) out.ranks.push_back(record_from_json(rank));
    if (record.at("kind") == "failure") why = record.at("error");
  };
  campaign one(by.answers, e, files, records, std::move(hooks));
  if (!one.run()) throw failure(exit_code::interrupted, "interrupted");
  if (!why.empty()) throw failure(static_cast<exit_code>(one.worst_exit_code()), why);
  return out;
}

} // namespace regatta
