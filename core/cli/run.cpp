// SPDX-License-Identifier: Apache-2.0
#include "cli/run.hpp"

#include "base/failure.hpp"
#include "base/standard_output.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "campaign/campaign.hpp"
#include "campaign/facts.hpp"
#include "campaign/preflight.hpp"
#include "campaign/prepare.hpp"
#include "campaign/rank_logs.hpp"
#include "cli/columns.hpp"
#include "cli/outside.hpp"
#include "device/topology.hpp"
#include "launch/cpus.hpp"
#include "measure/canary.hpp"
#include "measure/context.hpp"
#include "measure/host.hpp"
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

private:
  void clear() {
    if (!shown_.empty()) fmt::print(stderr, "\r\x1b[K");
    std::fflush(stderr);
    shown_.clear();
  }
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
    if (plugins.find(kind::model, c.model.id).graph.create) {
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
  json host = describe_host(cgroup_cpu_limit());
  host["gpu_topology"] = nullptr;
  const auto on_device =
      std::find_if(e.cases.begin(), e.cases.end(), [](const case_config& c) { return c.train.device != "cpu"; });
  if (on_device == e.cases.end()) return host;
  try {
    const component& executor = executor_for(plugins, on_device->train.device);
    const void* const table = executor.extension ? executor.extension(RG_EXT_DEVICES) : nullptr;
    if (table) host["gpu_topology"] = topology_of(*static_cast<const rg_devices*>(table), "executor " + executor.id);
  } catch (const failure&) { // the case itself will say that there is none
  }
  return host;
}

int dry_run(const registry& plugins, const experiment& e) {
  const double flops = measure_flops();
  std::vector<std::vector<std::string>> rows;
  double total = 0;
  int code = 0;
  for (std::size_t i = 0; i < e.cases.size(); ++i) {
    const case_config& c = e.cases[i];
    std::string label;
    for (const auto& [key, value] : c.swept)
      label += fmt::format("{}{} = {}", label.empty() ? "" : ", ", key, value.dump());
    if (label.empty()) label = fmt::format("{}, {}, {}", c.model.id, c.strategy.id, c.transport.id);
    try {
      const model_facts m = facts_of(plugins, c);
      const prepared_run run = prepare(plugins, c, "");
      check_tables(c, m, run.exchanges_rows);
      // With its baseline and the control under `none`, where they run.
      const double runs = static_cast<double>(c.measure.repeats) * (c.measure.baseline && !is_baseline(c) ? 2.5 : 1.0);
      const double seconds = estimated_seconds(c, m, flops) * runs;
      const std::uint64_t bytes = estimated_bytes(c, m, run.job.layout.servers), there = available_bytes();
      total += seconds;
      const std::string note = there && bytes > there ? "skipped: more memory than is free" : "";
      rows.push_back({std::to_string(i + 1), label, std::to_string(run.ranks.size()),
                      seconds > 0 ? human_duration(seconds) : "unknown", human_bytes(static_cast<double>(bytes)),
                      note});
    } catch (const failure& f) {
      rows.push_back({std::to_string(i + 1), label, "-", "-", "-", fmt::format("skipped: {}", f.what())});
      if (e.cases.size() == 1) code = static_cast<int>(f.code());
    }
  }
  fmt::print(document_stream(), "{}\n",
             indented({{"", true}, {"case"}, {"ranks", true}, {"time", true}, {"memory", true}, {""}}, rows));
  fmt::print(document_stream(), "{} case{}, about {} in all, if a core keeps up {:.0f} GFLOP/s; nothing was run\n",
             e.cases.size(), e.cases.size() == 1 ? "" : "s", total > 0 ? human_duration(total) : "an unknown time",
             flops * 1e-9);
  return code;
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
  std::vector<std::string> notices = e.notices;
  for (std::string& n :
       notices_of_servers(e, [&](const case_config& c) { return prepare(plugins, c, "").job.layout.servers; }))
    notices.push_back(std::move(n));
  for (const std::string& n : notices) fmt::print(stderr, "{}\n", n);
  refuse_hopeless(e, [&](const case_config& c) {
    const model_facts m = facts_of(plugins, c);
    check_tables(c, m, prepare(plugins, c, "").exchanges_rows);
  });
  if (o.dry_run) return dry_run(plugins, e);

  std::vector<std::string> warnings = notices;
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
  for (std::size_t i = notices.size(); i < warnings.size(); ++i) s.say("warning: " + warnings[i]); // others are said
  std::vector<json> entries = file.entries();
  rank_logs logs(folder / "logs");
  const int shown = log_level_named(o.log).value_or(RG_LOG_WARNING);
  campaign_hooks hooks;
  hooks.outside = outside.get();
  hooks.progress = [&](const progress& p) { s.show(p); };
  hooks.log = [&](std::uint32_t rank, int level, const std::string& text) {
    if (rank != coordinator_rank)
      if (const auto trouble = logs.add(rank, level, text)) s.say("warning: " + *trouble);
    if (level > shown) return;
    s.say(rank == coordinator_rank ? one_line(text) : fmt::format("rank {}: {}", rank, cleaned(text)));
  };
  hooks.begin_run = [&](const std::string& name) { logs.begin(name); };
  hooks.log_file = [&](std::uint32_t rank) { return logs.file(rank); };
  hooks.entry = [&](std::size_t index, const json& entry) {
    entries[index] = entry;
    file.store(entries);
    if (entry.at("status") != "ok")
      s.say(fmt::format("case {} {}: {}", index + 1, entry.at("status").get<std::string>(),
                        entry.at("error").get<std::string>()));
  };
  campaign all(
      plugins, e, [&](std::size_t i) { return !entries[i].is_null(); }, std::move(hooks));
  const bool finished = all.run();

  const json document = file.document();
  fmt::print(document_stream(), "{}",
             render(document, *form, {terminal_width(fileno(document_stream())), file.path().string()}));
  std::fflush(document_stream());
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
