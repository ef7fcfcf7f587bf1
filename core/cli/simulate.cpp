// SPDX-License-Identifier: Apache-2.0
#include "cli/simulate.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"
#include "campaign/plugin_facts.hpp"
#include "campaign/plugin_files.hpp"
#include "campaign/prepare.hpp"
#include "cli/begin_campaign.hpp"
#include "cli/data.hpp"
#include "cli/experiment_checks.hpp"
#include "cli/indented_table.hpp"
#include "cli/plugin_folders.hpp"
#include "cli/run_screen.hpp"
#include "cli/standard_output.hpp"
#include "compare/claims.hpp"
#include "config/toml_document.hpp"
#include "launch/cpus.hpp"
#include "page/page.hpp"
#include "report/context.hpp"
#include "report/data_fingerprint.hpp"
#include "report/render.hpp"
#include "report/result_checks.hpp"
#include "report/result_folder.hpp"
#include "results/campaign_records.hpp"
#include "results/result_document.hpp"
#include "simulate/campaign.hpp"
#include "simulate/machine_file.hpp"

#include <algorithm>
#include <ctime>
#include <map>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

namespace regatta {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path folder_of(const simulate_options& o, const experiment& e) {
  if (!o.out.empty()) return o.out;
  return result_folder::make_new(
      fs::path("results") / fmt::format("{}-simulated-{:%Y%m%d-%H%M%S}", e.name, fmt::localtime(std::time(nullptr))));
}

// The machine of the heading: that of the file, not this one.
json host_of(const machine_file& m) {
  return {{"name", m.name}, {"cpu", m.cpu.empty() ? m.name : m.cpu}, {"cores", m.cores > 0 ? json(m.cores) : json()}};
}

json context_of(const simulate_options& o, const experiment& e, const machine_file& m, const json& plugins) {
  json context = make_context(o.command, e, json::array({host_of(m)}), plugins, e.notices);
  context["program_sha256"] = sha256_of("/proc/self/exe");
  context["data"] = json::array();
  context["simulated"] = {{"machine", fs::absolute(o.machine).string()},
                          {"network", o.network.empty() ? json() : json(fs::absolute(o.network).string())},
                          {"calibrated", m.date.empty() ? json() : json(m.date)},
                          {"fingerprint", m.text_hash}};
  return context;
}

experiment load(const simulate_options& o, const registry& plugins) {
  experiment e = load_experiment(o.file, o.changes, catalogue_of(plugins));
  for (case_config& c : e.cases) {
    if (c.measure.precision > 0) // repeats differ by the variation of the machine file only
      e.notices.push_back(c.written.notice("measure.precision", "has no effect on a simulation: measure.repeats has"));
    c.measure.precision = 0;
    c.measure.evaluate_every = 0;
    c.measure.target = 0;
  }
  std::ranges::sort(e.notices);
  e.notices.erase(std::unique(e.notices.begin(), e.notices.end()), e.notices.end());
  return e;
}

int simulate_and_print(const simulate_options& o, run_screen& screen, std::string& written) {
  const auto form = result_format_named(o.format);
  if (!form && o.format != "html")
    throw failure(exit_code::usage,
                  fmt::format("--format {}: expected console, markdown, csv, json, latex or html", one_line(o.format)));
  if (o.resume && o.out.empty())
    throw failure(exit_code::usage, "--resume: expected --out DIR beside it; name the folder of the campaign to go on "
                                    "with, such as --out results/NAME-simulated-TIME");
  const machine_file machine = read_machine(o.machine, o.network);
  const registry plugins(plugin_folders(o.plugin_path, plugin_path_of(o.file, o.changes)));
  const experiment e = load(o, plugins);
  for (const std::string& n : e.notices) screen.say(n);
  generate_data(e, [&](const std::string& text) { screen.say(text); });
  plugin_facts_cache answers(plugins);
  reject_impossible_experiment(
      e, [&](const case_config& c) { check_tables(c, answers.of(c).model, prepare(answers, c, "").exchanges_rows); });

  plugin_files files(plugins);
  const json context = context_of(o, e, machine, plugins_of(answers, e, files));
  result_folder folder(folder_of(o, e), o.resume);
  campaign_records records(e);
  result_document results(e, records);
  written = folder.result().string();
  begin_or_resume(folder, records, results, context, screen);
  add_resolved(folder, e, o.file, o.changes, plugins);
  folder.add_file("machine.toml", read_text(o.machine));
  if (!o.network.empty()) folder.add_file("network.toml", read_text(o.network));
  if (const std::string problem = folder.write(); !problem.empty()) throw failure(exit_code::run, problem);

  std::string unwritten; // the reason; empty: it is written
  simulation_hooks hooks;
  if (!o.exported.empty())
    hooks.goal = [&](std::size_t index) {
      const std::string number = e.cases.size() == 1 ? "" : fmt::format("-{}", index + 1);
      return (folder.path() / fmt::format("operations{}.goal", number)).string();
    };
  hooks.trace = [&](const std::string& run) { return (folder.path() / "traces" / (run + ".pftrace.gz")).string(); };
  hooks.progress = [&](const progress& p) { screen.show(p); };
  hooks.record = [&](const json& record) {
    folder.append(record);
    results.update(record);
    unwritten = write_result(folder, unwritten, screen);
    if (record.at("kind") == "failure")
      screen.say(fmt::format("case {} {}: {}", record.at("index").get<std::size_t>() + 1,
                             record.at("status").get<std::string>(), record.at("error").get<std::string>()));
  };
  const std::size_t cores = assign_cpus(this_hosts_cpus(), 1, 1, false).available;
  const int worst = simulate_cases(answers, e, machine, o.jobs ? o.jobs : cores, records, hooks);

  json document = results.document();
  document["simulated"] = true; // also if every case failed
  if (!e.claims.empty()) document["claims"] = decided_claims(document, e.claims);
  folder.set_result(document);
  unwritten = folder.write();
  screen.clear();
  print_output(form ? render(document, *form, {terminal_width(fileno(document_stream())), written})
                    : page::render_page({{document, resolved_toml(e.cases[0], e.plugin_path)}}).html);
  if (!unwritten.empty()) screen.say(unwritten + "; results are missing on the disk");
  if (worst == static_cast<int>(exit_code::interrupted)) {
    screen.say(fmt::format("interrupted: {} of {} case{} finished; go on with --out {} --resume",
                           results.finished_cases(), e.cases.size(), e.cases.size() == 1 ? "" : "s",
                           folder.path().string()));
    return worst;
  }
  if (worst == static_cast<int>(exit_code::usage) || worst == static_cast<int>(exit_code::plugin)) return worst;
  bool wrong = false;
  for (const std::string& problem : check_results(document.at("results"))) {
    // Tables for people already show which results are wrong.
    if (form == format::csv || form == format::json || form == format::latex) screen.say("wrong: " + problem);
    wrong = true;
  }
  if (wrong) return static_cast<int>(exit_code::wrong);
  if (worst && worst != static_cast<int>(exit_code::skipped)) return worst;
  if (!unwritten.empty()) return static_cast<int>(exit_code::run);
  const json& entries = document.at("results");
  const bool none_ran = std::ranges::all_of(entries, [](const json& r) { return r.at("status") == "skipped"; });
  return none_ran ? static_cast<int>(exit_code::skipped) : 0;
}

} // namespace

int simulate_verb(const simulate_options& o) {
  run_screen screen(o.progress);
  std::string written;
  const int code = simulate_and_print(o, screen, written);
  screen.end(code, written);
  return code;
}

} // namespace regatta
