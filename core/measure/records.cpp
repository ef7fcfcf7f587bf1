// SPDX-License-Identifier: Apache-2.0
#include "measure/records.hpp"

#include "base/json_members.hpp"

namespace regatta {

using nlohmann::json;

json campaign_record(const json& context) {
  return {{"kind", "campaign"}, {"context", context}};
}

json run_record(const experiment& e, std::uint64_t number, finished_run r) {
  json j = {{"kind", "run"},
            {"number", number},
            {"role", r.role},
            {"index", r.index},
            {"case", swept_values(e.cases.at(r.index))},
            {"repeat", r.repeat},
            {"round", r.round},
            {"asynchronous", r.asynchronous},
            {"plugins", r.plugins},
            {"ranks", std::move(r.ranks)},
            {"hosts", json::array()}};
  for (const nlohmann::json& host : r.hosts) j["hosts"].push_back(host);
  if (r.role == "case") {
    j["facts"] = members_to_json(r.facts);
    j["needs"] = json::array();
    if (r.needs_baseline) j["needs"].push_back("baseline");
    if (r.needs_contention) j["needs"].push_back("contention");
  }
  return j;
}

json failure_record(const experiment& e, std::size_t index, const std::string& status, const std::string& error,
                    const case_facts& facts, const std::string& dump) {
  json record = {{"kind", "failure"}, {"index", index}, {"case", swept_values(e.cases.at(index))},
                 {"status", status},  {"error", error}, {"facts", members_to_json(facts)}};
  if (!dump.empty()) record["dump"] = dump;
  return record;
}

json kernels_record(const std::string& key, const std::string& kernel_choices) {
  return {{"kind", "kernels"}, {"key", key}, {"kernel_choices", kernel_choices}};
}

json machine_record(std::uint64_t round, const json& machine) {
  return {{"kind", "machine"}, {"round", round}, {"machine", machine}};
}

json swept_values(const case_config& c) {
  json j = json::object();
  for (const auto& [key, value] : c.swept) j[key] = value;
  return j;
}

} // namespace regatta
