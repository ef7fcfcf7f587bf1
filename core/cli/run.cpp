// SPDX-License-Identifier: Apache-2.0
#include "cli/run.hpp"

#include "base/failure.hpp"
#include "campaign/campaign.hpp"
#include "campaign/prepare.hpp"
#include "cli/columns.hpp"
#include "cli/data.hpp"
#include "cli/devices.hpp"
#include "cli/dry_run.hpp"
#include "cli/machine.hpp"
#include "cli/outside.hpp"
#include "measure/canary.hpp"
#include "measure/context.hpp"
#include "rank/model.hpp"
#include "report/render.hpp"
#include "report/result_file.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <set>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

namespace regatta {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The line at the bottom of a terminal, and the other lines that must not run into it.
class screen {
public:
  screen(const std::string& when) : live_(when == "always" || (when == "auto" && isatty(STDERR_FILENO))) {}
  ~screen() { clear(); }
  void show(const progress& p) {
    if (!live_) return;
    const std::string line = progress_line(p, terminal_width(STDERR_FILENO));
    if (line == shown_) return;
    fmt::print(stderr, "\r{}\x1b[K", line);
    std::fflush(stderr);
    shown_ = line;
  }
  void say(const std::string& text) {
    clear();
    fmt::print(stderr, "{}\n", text);
  }

  void clear() {
    if (!shown_.empty()) fmt::print(stderr, "\r\x1b[K");
    std::fflush(stderr);
    shown_.clear();
  }

private:
  bool live_;
  std::string shown_;
};

json case_of(const case_config& c) {
  json j = json::object();
  for (const auto& [key, value] : c.swept) j[key] = value;
  return j;
}

// Every plugin that any case uses, baselines included, with the parameters of the first case that does.
json plugins_of(const registry& plugins, const experiment& e) {
  json list = json::array();
  std::set<std::pair<int, std::string>> seen;
  const auto add = [&](kind k, const component_choice& choice) {
    if (!seen.insert({static_cast<int>(k), choice.id}).second) return;
    const component& c = plugins.find(k, choice.id);
    list.push_back({{"kind", name_of(k)},
                    {"id", choice.id},
                    {"version", c.plugin_version},
                    {"path", c.file.string()},
                    {"sha256", sha256_of(c.file)},
                    {"parameters", choice.parameters}});
  };
  for (const case_config& c : e.cases) {
    add(kind::model, c.model);
    if (plugins.find(kind::model, c.model.id).is_graph) {
      try {
        add(kind::executor, {executor_for(plugins, c.train.device).id, {}});
      } catch (const failure&) { // the case itself will say that there is none
      }
    }
    add(kind::strategy, c.strategy);
    add(kind::transport, c.transport);
  }
  return list;
}

// With the topology of its devices where a case computes on them: nothing that knows it is loaded otherwise.
json this_host(const registry& plugins, const experiment& e) {
  json host = describe_machine();
  host["gpu_topology"] = nullptr;
  const auto on_device =
      std::find_if(e.cases.begin(), e.cases.end(), [](const case_config& c) { return c.train.device != "cpu"; });
  if (on_device == e.cases.end()) return host;
  try {
    host["gpu_topology"] = devices_of(plugins, executor_for(plugins, on_device->train.device)).at("topology");
  } catch (const failure&) { // the case itself will say that there is none
  }
  return host;
}

fs::path default_folder(const std::string& name) {
  const std::time_t now = std::time(nullptr);
  return fs::path("results") / fmt::format("{}-{:%Y%m%d-%H%M%S}", name, fmt::localtime(now));
}

void write_resolved(const fs::path& folder, const experiment& e) {
  for (std::size_t i = 0; i < e.cases.size(); ++i)
    write_atomically(folder / (e.cases.size() == 1 ? "resolved.toml" : fmt::format("resolved-{}.toml", i + 1)),
                     resolved_toml(e.cases[i], e.plugin_path));
}

} // namespace

int run_verb(const run_options& o) {
  const auto form = format_named(o.format);
  if (!form)
    throw failure(exit_code::usage, fmt::format("--format {}: expected console, markdown, csv or json", o.format));
  const auto outside = enter_outside_launch(duties_of_a_rank()); // the processes that are ranks do not come back
  const registry plugins(plugin_folders(o.plugin_path, plugin_path_of(o.file, o.changes)));
  const experiment e = load_experiment(o.file, o.changes, catalogue_of(plugins));
  plugin_answers answers(plugins);
  if (o.dry_run) return dry_run(answers, e, *form);
  generate_data(e);

  // The only case of an experiment is refused before anything starts; those of a sweep are skipped one by one.
  if (e.cases.size() == 1) prepare(answers, e.cases[0], "");
  std::vector<std::string> warnings;
  if (auto w = build_warning()) warnings.push_back(*w);
  for (const unusable& u : plugins.failures()) warnings.push_back(fmt::format("{}: {}", u.file.string(), u.reason));
  std::vector<json> cases;
  for (const case_config& c : e.cases) cases.push_back(case_of(c));
  const fs::path folder = o.out.empty() ? default_folder(e.name) : fs::path(o.out);
  result_file file(folder,
                   make_context(o.command, e, json::array({this_host(plugins, e)}), plugins_of(plugins, e), warnings),
                   cases, o.resume);
  write_resolved(folder, e);

  screen s(o.progress);
  for (const std::string& w : warnings) s.say("warning: " + w);
  std::vector<json> entries = file.entries();
  campaign_hooks hooks;
  hooks.outside = outside.get();
  hooks.progress = [&](const progress& p) { s.show(p); };
  hooks.log = [&](std::uint32_t rank, int level, const std::string& text) {
    if (level > RG_LOG_WARNING) return;
    s.say(rank == coordinator_rank ? text : fmt::format("rank {}: {}", rank, text));
  };
  hooks.entry = [&](std::size_t index, const json& entry) {
    entries[index] = entry;
    file.store(entries);
    if (entry.at("status") != "ok")
      s.say(fmt::format("case {} {}: {}", index + 1, entry.at("status").get<std::string>(),
                        entry.at("error").get<std::string>()));
  };
  campaign all(
      answers, e, [&](std::size_t i) { return !entries[i].is_null(); }, std::move(hooks));
  const bool finished = all.run();

  const json document = file.document();
  s.clear(); // the live line must not stand before the table
  fmt::print("{}", render(document, *form, {terminal_width(STDOUT_FILENO), file.path().string()}));
  std::fflush(stdout);
  int wrong = 0;
  for (const std::string& problem : check_results(document.at("results"))) {
    // The tables say it themselves.
    if (*form == format::csv || *form == format::json) s.say("wrong: " + problem);
    wrong = static_cast<int>(exit_code::wrong);
  }
  for (std::size_t i = 0; i < e.cases.size(); ++i)
    for (const json& entry : document.at("results"))
      if (entry.at("case") == cases[i])
        if (const auto missed = missed_target(entry, e.cases[i].measure.target)) {
          s.say("wrong: " + *missed);
          wrong = static_cast<int>(exit_code::wrong);
        }
  if (!finished) return static_cast<int>(exit_code::interrupted);
  if (all.worst_exit_code() == static_cast<int>(exit_code::usage) ||
      all.worst_exit_code() == static_cast<int>(exit_code::plugin))
    return all.worst_exit_code();
  if (wrong) return wrong;
  if (all.worst_exit_code() && all.worst_exit_code() != static_cast<int>(exit_code::skipped))
    return all.worst_exit_code();
  const auto& results = document.at("results");
  const bool none_ran = !results.empty() && std::all_of(results.begin(), results.end(),
                                                        [](const json& r) { return r.at("status") == "skipped"; });
  return none_ran ? static_cast<int>(exit_code::skipped) : 0;
}

} // namespace regatta
