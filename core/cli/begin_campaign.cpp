// SPDX-License-Identifier: Apache-2.0
#include "cli/begin_campaign.hpp"

#include "base/failure.hpp"
#include "campaign/prepare.hpp"
#include "config/toml_document.hpp"
#include "measure/records.hpp"
#include "report/context.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace regatta {

namespace fs = std::filesystem;
using nlohmann::json;

json plugins_of(plugin_facts_cache& answers, const experiment& e, plugin_files& files) {
  const registry& plugins = answers.plugins();
  json list = json::array();
  std::map<std::pair<int, std::string>, std::size_t> places; // in the list
  const auto add = [&](kind k, const component_choice& choice) -> json& {
    const auto [place, added] = places.try_emplace({static_cast<int>(k), choice.id}, list.size());
    if (!added) return list[place->second];
    const component& c = plugins.find(k, choice.id);
    list.push_back({{"kind", name_of(k)},
                    {"id", choice.id},
                    {"version", c.plugin_version},
                    {"path", c.file.string()},
                    {"built_in", c.file.parent_path() == built_in_folder()},
                    {"sha256", files.verified({c.file.string()}).begin()->second},
                    {"nested_in", json::array()},
                    {"parameters", choice.parameters}});
    return list.back();
  };
  const auto facts_of = [&](const case_config& c) -> const plugin_facts* {
    try {
      return &answers.of(c);
    } catch (const failure&) { // the case itself reports it
      return nullptr;
    }
  };
  for (const case_config& c : e.cases) {
    add(kind::model, c.model);
    if (const plugin_facts* facts = facts_of(c); facts && !facts->model.executor.empty())
      add(kind::executor, {facts->model.executor, {}});
    add(kind::strategy, c.strategy);
    add(kind::transport, c.transport);
  }
  // Later, because a plugin that a case chooses has the parameters that the case gives.
  for (const case_config& c : e.cases) {
    if (const plugin_facts* facts = facts_of(c))
      for (const std::string& id : facts->transports)
        if (json& outer = add(kind::transport, {id, {}})["nested_in"];
            id != c.transport.id && std::find(outer.begin(), outer.end(), c.transport.id) == outer.end())
          outer.push_back(c.transport.id);
    for (const case_config& run : runs_of(c)) {
      add(kind::strategy, run.strategy);
      add(kind::transport, run.transport);
    }
  }
  return list;
}

namespace {

// Takes over a [report] that was changed since the campaign began.
void show_as_asked_now(result_folder& folder, campaign_records& records, const json& context) {
  const json::json_pointer report("/experiment/report");
  json changed = records.context();
  if (changed.contains(report) && changed[report] == context.at(report)) return;
  changed[report] = context.at(report);
  const json record = campaign_record(changed);
  records.add(record);
  folder.append(record);
}

// Returns why simulated runs would be mixed with measured ones, or with those of another machine file; empty: they are
// not.
std::string mixes_simulated(const json& before, const json& now) {
  const json was = before.value("simulated", json()), is = now.value("simulated", json());
  if (was.is_null() != is.is_null()) return was.is_null() ? "its runs were measured" : "its runs were simulated";
  if (!was.is_null() && was.value("fingerprint", json()) != is.value("fingerprint", json()))
    return "the machine or the network file differs";
  return "";
}

} // namespace

void add_resolved(result_folder& folder, const experiment& e, const fs::path& file, const overrides& changes,
                  const registry& plugins) {
  if (!file.empty()) {
    try {
      folder.add_file("as-written.toml", read_text(file));
      folder.add_file("resolved-all.toml", whole_toml(file, changes, catalogue_of(plugins), e));
    } catch (const toml_error& error) {
      throw failure(exit_code::usage, fmt::format("{}: changed while it was read: {}", file.string(), error.what()));
    }
  }
  for (std::size_t i = 0; i < e.cases.size(); ++i)
    folder.add_file(e.cases.size() == 1 ? "resolved.toml" : fmt::format("resolved-{}.toml", i + 1),
                    resolved_toml(e.cases[i], e.plugin_path));
}

void begin_or_resume(result_folder& folder, campaign_records& records, result_document& results, const json& context,
                     run_screen& s) {
  const auto refuse = [&](const std::string& why) {
    throw failure(exit_code::usage, fmt::format("{}:1: cannot resume: {}; choose another folder with --out",
                                                folder.records().string(), why));
  };
  std::size_t read = 0;
  for (const std::string& damage : folder.read([&](json&& record) {
         records.add(record);
         results.update(record);
         ++read;
       }))
    s.say("warning: " + damage);
  if (read && !records.context().is_object()) refuse("its first record is damaged");
  if (records.context().is_object()) {
    try {
      if (const std::string why = resume_conflict(records.context(), context); !why.empty()) refuse(why);
    } catch (const json::exception&) {
      refuse("its first record is damaged");
    }
    if (const std::string why = mixes_simulated(records.context(), context); !why.empty()) refuse(why);
    for (const auto& [path, sum] : records.plugins())
      if (fs::exists(path) && sha256_of(path) != sum) refuse(path + " has another binary");
    show_as_asked_now(folder, records, context);
  } else {
    const json record = campaign_record(context);
    records.add(record);
    folder.append(record);
  }
}

std::string write_result(result_folder& folder, const std::string& before, run_screen& s) {
  std::string reason = folder.write();
  if (!reason.empty() && before.empty())
    s.say(fmt::format("{}; the campaign goes on, and writing is tried again after every run", reason));
  return reason;
}

} // namespace regatta
