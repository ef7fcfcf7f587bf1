// SPDX-License-Identifier: Apache-2.0
#include "report/render.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/text.hpp"
#include "report/cases_table.hpp"
#include "report/claims_table.hpp"
#include "report/heading.hpp"
#include "report/latex.hpp"
#include "report/pivot.hpp"
#include "report/quantity.hpp"
#include "report/result_checks.hpp"
#include "report/stragglers_table.hpp"
#include "report/text_table.hpp"

namespace regatta {
namespace {

using nlohmann::json;

constexpr std::size_t most_lost_parts = 3;
constexpr const char* stragglers_title = "The slowest rank holds the others back: computing time of a step, and how "
                                         "often it was the last one:";

// A notice names the place of a key first: "x.toml:14:1: notice: optimizer.momentum has no effect ...".
std::string labelled(const std::string& warning) {
  return warning.find("notice: ") == std::string::npos ? "warning: " + warning : warning;
}

std::string console(const json& result, const render_options& options) {
  cases_table cases = table_of_cases(result, most_lost_parts);
  // A narrow terminal first drops the smaller parts of the lost efficiency, then whole columns.
  for (std::size_t parts = most_lost_parts; parts-- > 0 && options.width > 0;)
    if (width_of(cases.table) > options.width) cases = table_of_cases(result, parts);
  const std::vector<std::string> left_out = fit(cases.table, options.width);
  std::string out;
  for (const auto& line : heading_of(result, cases.constant)) out += flow(line, options.width);
  out += "\n";
  out += cases.table.rows.empty() ? std::string("no case has run\n") : draw(cases.table, options.width);
  if (!left_out.empty()) out += "\n" + fill("left out at this width: " + join(left_out), options.width, 2);
  if (const std::string pivot = render_pivot(result, false, options.width); !pivot.empty()) out += "\n" + pivot;
  if (const text_table slow = table_of_stragglers(result); !slow.rows.empty())
    out += "\n" + fill(stragglers_title, options.width, 0) + draw(slow, options.width);
  if (text_table claims = table_of_claims(result); !claims.rows.empty()) {
    fit(claims, options.width);
    out += "\n" + draw(claims, options.width);
  }
  if (const auto warnings = warnings_of(result); !warnings.empty()) {
    out += "\n";
    for (const std::string& warning : warnings) out += fill(labelled(warning), options.width, 2);
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
  const auto add_item = [&](const std::string& text) { out += "* " + markdown_text(text) + "\n"; };
  for (const auto& line : heading_of(result, cases.constant)) add_item(join(line, "; "));
  out += "\n";
  out += cases.table.rows.empty() ? std::string("no case has run\n") : draw_markdown(cases.table);
  if (const std::string pivot = render_pivot(result, true); !pivot.empty()) out += "\n" + pivot;
  if (const text_table slow = table_of_stragglers(result); !slow.rows.empty())
    out += fmt::format("\n{}\n\n{}", stragglers_title, draw_markdown(slow));
  if (const text_table claims = table_of_claims(result); !claims.rows.empty()) out += "\n" + draw_markdown(claims);
  const auto warnings = warnings_of(result), wrong = check_results(result.at("results")), verdict = verdict_of(result);
  if (!warnings.empty() || !wrong.empty() || !verdict.empty() || !options.path.empty()) out += "\n";
  for (const std::string& warning : warnings) add_item(labelled(warning));
  for (const std::string& what : wrong) add_item("wrong: " + what);
  if (!verdict.empty()) add_item(join(verdict, "; "));
  if (!options.path.empty()) out += "* `" + options.path + "`\n";
  return out;
}

std::string latex(const json& result, const render_options& options) {
  const cases_table cases = table_of_cases(result, most_lost_parts);
  std::string out = "% \\usepackage{booktabs} is needed.\n";
  const auto add_comment = [&](const std::string& text) { out += "% " + one_line(text) + "\n"; };
  std::vector<std::string> heading;
  for (const auto& line : heading_of(result, cases.constant)) heading.push_back(join(line, "; "));
  for (const std::string& line : heading) add_comment(line);
  for (const std::string& warning : warnings_of(result)) add_comment(labelled(warning));
  for (const std::string& what : check_results(result.at("results"))) add_comment("wrong: " + what);
  if (!options.path.empty()) add_comment(options.path);
  if (!cases.table.rows.empty())
    out += "\n" + draw_latex(cases.table, heading.empty() ? "" : heading.front(), cases.table.rows.size(),
                             check_results(result.at("results")));
  for (const pivot_table& pivot : pivot_tables(result))
    if (!pivot.table.columns.empty()) out += "\n" + draw_latex(pivot.table, pivot.title, pivot.own_rows, pivot.notes);
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

std::optional<format> result_format_named(std::string_view name) {
  return name == "latex" ? format::latex : format_named(name);
}

std::string render(const json& result, format f, const render_options& options) {
  switch (f) {
  case format::console: return console(result, options);
  case format::markdown: return markdown(result, options);
  case format::csv: return render_csv(repeat_rows(result));
  case format::latex: return latex(result, options);
  case format::json: break;
  }
  return document_text(with_report(result));
}

} // namespace regatta
