// SPDX-License-Identifier: Apache-2.0
#include "report/render.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "measure/canary.hpp"
#include "report/cases_table.hpp"
#include "report/heading.hpp"
#include "report/text_table.hpp"

namespace regatta {
namespace {

using nlohmann::json;

constexpr std::size_t most_lost_parts = 3;

std::string console(const json& result, const render_options& options) {
  cases_table cases = table_of_cases(result, most_lost_parts);
  // A narrow terminal first costs the smaller parts of what was lost, then whole columns.
  for (std::size_t parts = most_lost_parts - 1; parts > 0 && options.width > 0; --parts)
    if (width_of(cases.table) > options.width) cases = table_of_cases(result, parts);
  const std::vector<std::string> left_out = fit(cases.table, options.width);
  std::string out;
  for (const auto& line : heading_of(result, cases.constant)) out += flow(line, options.width);
  out += "\n";
  out += cases.table.rows.empty() ? std::string("no case has run\n") : draw(cases.table, options.width);
  if (!left_out.empty()) out += "\n" + fill("left out at this width: " + join(left_out), options.width, 2);
  if (const std::string pivot = render_pivot(result, false); !pivot.empty()) out += "\n" + pivot;
  if (const auto warnings = warnings_of(result); !warnings.empty()) {
    out += "\n";
    for (const std::string& warning : warnings) out += fill("warning: " + warning, options.width, 2);
  }
  if (const auto wrong = check_results(result.at("results")); !wrong.empty()) {
    out += "\n";
    for (const std::string& what : wrong) out += fill("wrong: " + what, options.width, 2);
  }
  std::vector<std::string> verdict = verdict_of(result);
  if (!options.path.empty()) verdict.push_back(options.path);
  return verdict.empty() ? out : out + "\n" + flow(verdict, options.width);
}

std::string markdown(const json& result, const render_options& options) {
  const cases_table cases = table_of_cases(result, most_lost_parts);
  std::string out;
  for (const auto& line : heading_of(result, cases.constant)) out += "* " + join(line, "; ") + "\n";
  out += "\n";
  out += cases.table.rows.empty() ? std::string("no case has run\n") : draw_markdown(cases.table);
  if (const std::string pivot = render_pivot(result, true); !pivot.empty()) out += "\n" + pivot;
  std::vector<std::string> remarks;
  for (const std::string& warning : warnings_of(result)) remarks.push_back("warning: " + warning);
  for (const std::string& what : check_results(result.at("results"))) remarks.push_back("wrong: " + what);
  if (const auto verdict = verdict_of(result); !verdict.empty()) remarks.push_back(join(verdict, "; "));
  if (!options.path.empty()) remarks.push_back("`" + options.path + "`");
  if (!remarks.empty()) out += "\n";
  for (const std::string& remark : remarks) out += "* " + remark + "\n";
  return out;
}

} // namespace

std::optional<format> format_named(std::string_view name) {
  if (name == "console") return format::console;
  if (name == "markdown") return format::markdown;
  if (name == "csv") return format::csv;
  if (name == "json") return format::json;
  return std::nullopt;
}

std::string render(const json& result, format f, const render_options& options) {
  switch (f) {
  case format::console: return console(result, options);
  case format::markdown: return markdown(result, options);
  case format::csv: return render_csv(result);
  case format::json: break;
  }
  return result.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

} // namespace regatta
