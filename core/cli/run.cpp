// SPDX-License-Identifier: Apache-2.0
#include "cli/run.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"
#include "campaign/campaign.hpp"
#include "campaign/plugin_files.hpp"
#include "campaign/prepare.hpp"
#include "cli/begin_campaign.hpp"
#include "cli/data.hpp"
#include "cli/devices.hpp"
#include "cli/dry_run.hpp"
#include "cli/experiment_checks.hpp"
#include "cli/indented_table.hpp"
#include "cli/launcher_ranks.hpp"
#include "cli/machine.hpp"
#include "cli/plugin_folders.hpp"
#include "cli/rank_logs.hpp"
#include "cli/run_again.hpp"
#include "cli/run_screen.hpp"
#include "cli/run_traces.hpp"
#include "cli/standard_output.hpp"
#include "compare/claims.hpp"
#include "compare/render_comparison.hpp"
#include "config/toml_document.hpp"
#include "join/start.hpp"
#include "network/interfaces.hpp"
#include "page/page.hpp"
#include "rank/model.hpp"
#include "report/context.hpp"
#include "report/data_fingerprint.hpp"
#include "report/render.hpp"
#include "report/result_checks.hpp"
#include "report/result_folder.hpp"
#include "results/campaign_records.hpp"
#include "results/case_entry.hpp"
#include "results/disturbance.hpp"
#include "results/result_document.hpp"
#include "simulate/machine_file.hpp"

#include <algorithm>
#include <ctime>
#include <optional>
#include <set>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

namespace regatta {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Returns describe_machine() with `gpu_topology`: null unless a case uses a device, because asking loads the executor.
json this_host(plugin_facts_cache& answers, const experiment& e) {
  json host = describe_machine();
  host["gpu_topology"] = nullptr;
  const auto on_device =
      std::find_if(e.cases.begin(), e.cases.end(), [](const case_config& c) { return c.train.device != "cpu"; });
  if (on_device == e.cases.end()) return host;
  try {
    const registry& plugins = answers.plugins();
    const component& executor = plugins.find(kind::executor, answers.of(*on_device).model.executor);
    host["gpu_topology"] = devices_of(plugins, executor).at("topology");
  } catch (const failure&) { // the case itself reports it
  }
  return host;
}

// Returns "hosts" of the context: this machine, or all hosts of a launcher, with "links" of each cluster.interface.
json hosts_of(launched_hosts* launcher, plugin_facts_cache& answers, const experiment& e) {
  json mine = this_host(answers, e);
  std::set<std::string> interfaces;
  for (const case_config& c : e.cases) {
    const std::string& interface = c.cluster.interface;
    if (!interfaces.insert(interface).second) continue;
    try {
      if (launcher)
        launcher->addresses(interface);
      else
        add_links(mine, interface, links_of_interfaces(interface));
    } catch (const failure&) { // the case itself reports it
    }
  }
  if (!launcher) return json::array({std::move(mine)});
  json all = launcher->descriptions();
  mine.update(all[0]);
  all[0] = std::move(mine);
  return all;
}

// Throws failure (usage) if a host of the launcher lacks a plugin or data set of the experiment, or has another plugin.
// Compares the libraries of the plugins.
void require_files(launched_hosts& launcher, plugin_facts_cache& answers, const experiment& e) {
  std::set<std::string> plugins, data;
  for (const case_config& c : e.cases) {
    for (const std::string& path : {c.data.path, c.data.evaluation_path, c.data.vocabulary})
      if (!path.empty()) data.insert(fs::absolute(path).string());
    try {
      for (const std::string& file : answers.of(c).files) plugins.insert(file);
    } catch (const failure&) { // the case itself reports it
    }
  }
  std::vector<std::string> all(plugins.begin(), plugins.end());
  all.insert(all.end(), data.begin(), data.end());
  const std::vector<std::string> read(plugins.begin(), plugins.end());
  launcher.require_files(all, read);
  if (launcher.hosts().size() > 1) launcher.compare_libraries(read);
}

fs::path default_folder(const std::string& name) {
  const std::time_t now = std::time(nullptr);
  return result_folder::make_new(fs::path("results") / fmt::format("{}-{:%Y%m%d-%H%M%S}", name, fmt::localtime(now)));
}

// The cases to run: those of a file, or of a stored result.
struct chosen_cases {
  std::optional<cases_again> again;
  std::vector<std::string> plugin_path; // beside --plugin-path

  explicit chosen_cases(const run_options& o) {
    if (!o.again.empty()) again.emplace(o.again, o.only_case);
    plugin_path = again ? again->plugin_path() : plugin_path_of(o.file, o.changes);
  }
  experiment load(const run_options& o, const registry& plugins) const {
    return again ? again->load(o.changes.set, plugins) : load_experiment(o.file, o.changes, catalogue_of(plugins));
  }
};

// Returns the result in the format of --format, "html" if `form` is empty, or its comparison with the result that ran
// again. `file` is where it is stored.
std::string output_of(const json& document, const chosen_cases& cases, std::optional<format> form, const experiment& e,
                      const std::string& file) {
  const std::size_t width = terminal_width(fileno(document_stream()));
  if (cases.again)
    return render_comparison(compare({{cases.again->name(), cases.again->stored()}, {file, document}}, {}), {}, *form,
                             width);
  return form ? render(document, *form, {width, file})
              : page::render_page({{document, resolved_toml(e.cases[0], e.plugin_path)}}).html;
}

// Returns the format that --format names; std::nullopt: html. Throws failure (usage) if the output cannot have it.
std::optional<format> format_of(const run_options& o) {
  const auto form = result_format_named(o.format);
  if (!form && o.format != "html")
    throw failure(exit_code::usage,
                  fmt::format("--format {}: expected console, markdown, csv, json, latex or html", one_line(o.format)));
  if ((o.dry_run || !o.again.empty()) && !format_named(o.format))
    throw failure(exit_code::usage, fmt::format("--format {}: {} prints console, markdown, csv or json", o.format,
                                                o.dry_run ? "a dry run" : "the comparison of --again"));
  return form;
}

// Returns the machine file of a dry run: that of --machine, else machine.toml beside the experiment, if there is one and
// all cases have its model. Notes whether one was found there.
std::optional<machine_file> machine_of(const run_options& o, const experiment& e, std::vector<std::string>& notices) {
  if (!o.machine.empty()) return read_machine(o.machine, o.network);
  const std::filesystem::path beside = std::filesystem::path(o.file).parent_path() / "machine.toml";
  std::error_code ignored;
  if (!o.dry_run || o.file.empty() || !std::filesystem::exists(beside, ignored)) return {};
  machine_file found = read_machine(beside, o.network);
  const auto other = [&](const case_config& c) { return !found.model.empty() && c.model.id != found.model; };
  const auto first = std::ranges::find_if(e.cases, other);
  if (first == e.cases.end()) {
    notices.push_back(
        fmt::format("steps are simulated with {}, the machine file beside the experiment", beside.string()));
    return found;
  }
  notices.push_back(fmt::format("{} is of model {}, and a case has model {}: no step is simulated with it",
                                beside.string(), one_line(found.model), one_line(first->model.id)));
  return {};
}

// As run_verb(). Sets `written` to the file of the result.
int run_cases(const run_options& o, run_screen& s, std::string& written) {
  const auto form = format_of(o);
  if (o.resume && o.out.empty())
    throw failure(exit_code::usage, "--resume: expected --out DIR beside it; name the folder of the campaign to go on "
                                    "with, such as --out results/NAME-TIME");
  // Does not return in the launcher's own processes.
  const auto handlers = make_launcher_request_handlers();
  const auto launcher = o.wait_for ? wait_for_hosts(o.wait_for, handlers, o.allow_different_binaries)
                                   : start_under_launcher(handlers, o.allow_different_binaries);
  const chosen_cases chosen(o);
  const registry plugins(plugin_folders(o.plugin_path, chosen.plugin_path));
  const experiment e = chosen.load(o, plugins);
  plugin_facts_cache answers(plugins);
  answers.hosts = launcher.get();
  answers.addresses = addresses_of_interfaces;
  std::vector<std::string> notices = e.notices;
  for (std::string& n :
       notices_of_servers(e, [&](const case_config& c) { return prepare(answers, c, "").job.layout.servers; }))
    notices.push_back(std::move(n));
  const std::optional<machine_file> simulated = machine_of(o, e, notices);
  for (const std::string& n : notices) s.say(n);
  if (!o.dry_run) generate_data(e, [&](const std::string& text) { s.say(text); });
  // An experiment whose only case cannot run fails before anything starts; cases of a sweep are skipped one by one.
  reject_impossible_experiment(
      e, [&](const case_config& c) { check_tables(c, answers.of(c).model, prepare(answers, c, "").exchanges_rows); });
  if (o.dry_run) return dry_run(answers, e, *form, simulated ? &*simulated : nullptr);

  std::vector<std::string> warnings = notices;
  if (auto w = build_warning()) warnings.push_back(*w);
  if (launcher) {
    require_files(*launcher, answers, e);
    warnings.insert(warnings.end(), launcher->warnings().begin(), launcher->warnings().end());
  }
  for (const unusable& u : plugins.failures()) warnings.push_back(fmt::format("{}: {}", u.file.string(), u.reason));
  plugin_files files(plugins);
  json context =
      make_context(o.command, e, hosts_of(launcher.get(), answers, e), plugins_of(answers, e, files), warnings);
  context["data"] = fingerprints_of_data(e);
  context["sampling"] = disturbance_rule();
  context["cards"] = run_cards(e);
  context["program_sha256"] = sha256_of("/proc/self/exe");
  if (chosen.again)
    for (const std::string& text : chosen.again->differences(context)) {
      warnings.push_back(text);
      context["warnings"].push_back(text);
    }
  result_folder folder(o.out.empty() ? default_folder(e.name) : fs::path(o.out), o.resume);
  campaign_records records(e);
  result_document results(e, records);
  written = folder.result().string();
  begin_or_resume(folder, records, results, context, s);
  add_resolved(folder, e, o.file, o.changes, plugins);
  if (const std::string problem = folder.write(); !problem.empty()) throw failure(exit_code::run, problem);

  // The notices, which come first in `warnings`, were printed above.
  for (std::size_t i = notices.size(); i < warnings.size(); ++i) s.say("warning: " + warnings[i]);
  std::string unwritten; // the reason; reported when it first appears
  const auto write = [&] { unwritten = write_result(folder, unwritten, s); };
  rank_logs logs(folder.path() / "logs");
  run_traces traces(folder.path() / "traces");
  const auto document_now = [&] {
    json document = results.document();
    if (!e.claims.empty()) document["claims"] = decided_claims(document, e.claims);
    return document;
  };
  const int shown = log_level_named(o.log).value_or(RG_LOG_WARNING);
  campaign_hooks hooks;
  hooks.progress = [&](const progress& p) { s.show(p); };
  hooks.log = [&](std::uint32_t rank, int level, const std::string& text) {
    if (rank != coordinator_rank)
      if (const auto trouble = logs.add(rank, level, text)) s.say("warning: " + *trouble);
    if (level > shown) return;
    s.say(rank == coordinator_rank ? one_line(text) : fmt::format("rank {}: {}", rank, cleaned(text)));
  };
  hooks.begin_run = [&](const std::string& name) {
    logs.begin(name);
    traces.begin(name);
  };
  hooks.take_traces = [&](std::vector<json>& ranks, const std::vector<json>& hosts) {
    std::vector<timed_host> timed;
    for (const json& host : hosts) timed.push_back(timed_host_from_json(host));
    for (const std::string& warning : traces.take(ranks, timed)) s.say("warning: " + warning);
  };
  hooks.calibrate = machine_now;
  hooks.log_file = [&](std::uint32_t rank) { return logs.file(rank); };
  hooks.record = [&](const json& record) {
    folder.append(record);
    results.update(record);
    folder.set_result(document_now());
    write();
    if (record.at("kind") == "failure")
      s.say(fmt::format("case {} {}: {}", record.at("index").get<std::size_t>() + 1,
                        record.at("status").get<std::string>(), record.at("error").get<std::string>()));
  };
  campaign all(answers, e, files, records, std::move(hooks));
  const bool finished = all.run();

  const json document = document_now();
  folder.set_result(document);
  write();
  s.clear(); // else the progress line would stand before the table
  print_output(output_of(document, chosen, form, e, written));
  exit_code code = exit_code::done;
  const auto ends_with = [&](exit_code other) { code = worse_exit_code(code, other); };
  for (const std::string& problem : check_results(document.at("results"))) {
    // Tables for people already show which results are wrong.
    if (form == format::csv || form == format::json || form == format::latex) s.say("wrong: " + problem);
    ends_with(exit_code::wrong);
  }
  for (std::size_t i = 0; i < e.cases.size(); ++i)
    if (const json& entry = results.entry(i); !entry.is_null())
      if (const auto missed = missed_target(entry)) {
        s.say("wrong: " + *missed);
        ends_with(exit_code::wrong);
      }
  if (!unwritten.empty()) {
    s.say(unwritten + "; results are missing on the disk");
    ends_with(exit_code::run);
  }
  // Cases that this machine cannot run count only if no other one ran.
  if (const auto worst = static_cast<exit_code>(all.worst_exit_code()); worst != exit_code::skipped) ends_with(worst);
  if (!finished) {
    const std::string lost = all.lost_host();
    s.say(fmt::format("{}: {} of {} case{} finished; go on with --out {} --resume",
                      lost.empty() ? "interrupted" : lost + " is lost, and no further case runs without it",
                      results.finished_cases(), e.cases.size(), e.cases.size() == 1 ? "" : "s",
                      folder.path().string()));
    ends_with(lost.empty() ? exit_code::interrupted : exit_code::run);
  }
  const auto& entries = document.at("results");
  const bool none_ran = !entries.empty() && std::all_of(entries.begin(), entries.end(),
                                                        [](const json& r) { return r.at("status") == "skipped"; });
  if (finished && none_ran) ends_with(exit_code::skipped);
  return static_cast<int>(code);
}

} // namespace

int run_verb(const run_options& o, const std::function<int(int)>& conclude) {
  run_screen s(o.progress);
  std::string result;
  int code = run_cases(o, s, result);
  if (conclude) code = conclude(code);
  s.end(code, result);
  return code;
}

} // namespace regatta
