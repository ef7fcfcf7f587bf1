// SPDX-License-Identifier: Apache-2.0
#include "cli/dry_run.hpp"

#include "base/failure.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "cli/estimate.hpp"
#include "cli/indented_table.hpp"
#include "cli/standard_output.hpp"
#include "join/environment.hpp"
#include "report/progress_line.hpp"
#include "report/rounded.hpp"
#include "report/text_table.hpp"
#include "text/values.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace regatta {
namespace {

using nlohmann::ordered_json;

std::string label_of(const case_config& c) {
  std::string label;
  for (const auto& [key, value] : c.swept)
    label += fmt::format("{}{} = {}", label.empty() ? "" : ", ", key, value.dump());
  return label.empty() ? fmt::format("{}, {}, {}", c.model.id, c.strategy.id, c.transport.id) : label;
}

std::string duration(const time_estimate& t) {
  return t.seconds < 1 ? "under 1 s" : human_duration(t.seconds);
}

ordered_json json_of(const time_estimate& t) {
  return {{"seconds", t.seconds},
          {"cpu_seconds", std::isnan(t.cpu_seconds) ? ordered_json() : ordered_json(t.cpu_seconds)}};
}

ordered_json document_of(const experiment& e, const campaign_estimate& all, const machine_speed& machine,
                         const machine_file* simulated) {
  ordered_json cases = ordered_json::array(), shared = ordered_json::array();
  for (std::size_t i = 0; i < e.cases.size(); ++i) {
    const case_estimate& c = all.cases[i];
    ordered_json swept = ordered_json::object();
    for (const auto& [key, value] : e.cases[i].swept) swept[key] = value;
    const bool runs = c.refused.empty();
    cases.push_back({{"case", swept},
                     {"ranks", runs ? ordered_json(c.ranks) : ordered_json()},
                     {"repeats", fewest_repeats(e.cases[i].measure)},
                     {"time", runs ? json_of(c.time) : ordered_json()},
                     {"memory_bytes", runs ? ordered_json(c.memory) : ordered_json()},
                     {"flops_known", c.flops_known},
                     {"refused", runs ? ordered_json() : ordered_json(c.refused)}});
  }
  for (const shared_estimate& s : all.shared)
    shared.push_back(
        {{"what", s.what}, {"workers", s.workers}, {"runs", s.runs}, {"cases", s.cases}, {"time", json_of(s.time)}});
  return {
      {"schema", "regatta.estimate/1"},
      {"experiment", e.name},
      {"launcher", launcher_line(process_environment())},
      {"machine", {{"flops_per_second", machine.flops}, {"bytes_per_second", machine.bytes}, {"cores", machine.cores}}},
      {"simulated", simulated ? ordered_json(simulated->text_hash) : ordered_json()},
      {"cases", cases},
      {"shared", shared},
      {"total", json_of(all.total)}};
}

// Returns the document's cases with the same members for any number of cases, swept or not: `case` is the label of the
// table, and `time` has its members for a refused case, too.
nlohmann::json cases_for_csv(const experiment& e, const ordered_json& document) {
  nlohmann::json cases = document.at("cases");
  for (std::size_t i = 0; i < cases.size(); ++i) {
    cases[i]["case"] = label_of(e.cases[i]);
    if (cases[i]["time"].is_null()) cases[i]["time"] = {{"seconds", nullptr}, {"cpu_seconds", nullptr}};
  }
  return cases;
}

std::vector<std::vector<std::string>> rows_of(const experiment& e, const campaign_estimate& all) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < e.cases.size(); ++i) {
    const case_estimate& c = all.cases[i];
    if (c.refused.empty())
      rows.push_back({std::to_string(i + 1), label_of(e.cases[i]), std::to_string(c.ranks), duration(c.time),
                      human_bytes(static_cast<double>(c.memory)),
                      c.flops_known ? "" : "without the model's own work: its FLOPs are unknown"});
    else
      rows.push_back(
          {std::to_string(i + 1), label_of(e.cases[i]), "-", "-", "-", "skipped: " + join(lines_of(c.refused), "; ")});
  }
  for (const shared_estimate& s : all.shared) {
    const std::string runs =
        s.what == "kernel timing" ? "" : fmt::format(", {} worker{}", s.workers, s.workers == 1 ? "" : "s");
    rows.push_back({"", fmt::format("{}{} of {} case{}", s.what, runs, s.cases.size(), s.cases.size() == 1 ? "" : "s"),
                    std::to_string(s.workers), duration(s.time), "", ""});
  }
  return rows;
}

// Returns the line below the table.
std::string closing(const experiment& e, const campaign_estimate& all, const machine_speed& machine,
                    const machine_file* simulated) {
  const auto count = all.cases.size();
  const auto runnable = static_cast<std::size_t>(
      std::ranges::count_if(all.cases, [](const case_estimate& c) { return c.refused.empty(); }));
  if (runnable == 0) return "Nothing was run. No case can run on this machine.";
  const std::string which = runnable == count ? fmt::format("{} case{} would take", count, count == 1 ? "" : "s")
                                              : fmt::format("{} of {} cases would take", runnable, count);
  const measure_config& m = e.cases.front().measure;
  const std::string sampling =
      m.precision > 0
          ? fmt::format(" That is {} repeats; more follow until every figure is known to {:g} %, for at most {}.",
                        fewest_repeats(m), 100 * m.precision, exact_nanoseconds(m.budget))
          : "";
  const std::string on =
      simulated
          ? "by a simulation of its steps with the machine file"
          : fmt::format("on {:g} idle core{} of {:.0f} GFLOP/s, by rough formulas: without a machine file (regatta "
                        "calibrate, --machine) no step is simulated",
                        machine.cores, machine.cores == 1 ? "" : "s", machine.flops * 1e-9);
  return fmt::format("Nothing was run. {} {} {}.{}", which,
                     all.total.seconds < 1 ? "less than 1 s" : "about " + human_duration(all.total.seconds), on,
                     sampling);
}

} // namespace

int dry_run(plugin_facts_cache& answers, const experiment& e, format form, const machine_file* simulated) {
  const machine_speed machine = measure_machine();
  const campaign_estimate all = estimate(answers, e, machine, simulated);
  const std::vector<table_column> columns = {{"", true},     {"case"},         {"ranks", true},
                                             {"time", true}, {"memory", true}, {""}};
  const std::vector<std::vector<std::string>> rows = rows_of(e, all);
  switch (form) {
  case format::latex: // the verb refuses it
  case format::json: print_output(document_text(document_of(e, all, machine, simulated))); break;
  case format::csv:
    print_output(render_csv({{"results", cases_for_csv(e, document_of(e, all, machine, simulated))}}));
    break;
  case format::markdown: {
    text_table table;
    table.columns = columns;
    for (const auto& cells : rows) table.rows.push_back({cells, ""});
    print_output(draw_markdown(table));
    break;
  }
  case format::console:
    print_output(fmt::format("{}\n{}\nlauncher: {}\n", indented(columns, rows), closing(e, all, machine, simulated),
                             launcher_line(process_environment())));
  }
  // As a run would end.
  if (e.cases.size() == 1) return all.cases[0].code;
  constexpr int plugin = static_cast<int>(exit_code::plugin);
  if (std::ranges::any_of(all.cases, [](const case_estimate& c) { return c.code == plugin; })) return plugin;
  const bool none_runs = std::ranges::all_of(all.cases, [](const case_estimate& c) { return !c.refused.empty(); });
  return none_runs ? static_cast<int>(exit_code::skipped) : 0;
}

} // namespace regatta
