// SPDX-License-Identifier: Apache-2.0
#include "compare/render_comparison.hpp"

#include "base/json.hpp"
#include "report/fields.hpp"
#include "report/rounded.hpp"
#include "report/text_table.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace regatta {
namespace {

using nlohmann::json;

const char* name_of(outcome_of_test o) {
  switch (o) {
  case outcome_of_test::equal: return "equal";
  case outcome_of_test::better: return "better";
  case outcome_of_test::worse: return "worse";
  case outcome_of_test::alike: return "alike";
  case outcome_of_test::undecided: break;
  }
  return "undecided";
}

std::string value_text(const std::string& path, double value) {
  if (path.starts_with("bytes") || path.starts_with("memory")) return human_bytes(value);
  if (path.ends_with("seconds") || path.starts_with("seconds_to_")) return human_seconds(value);
  return plain_text(value);
}

text_table table_of(const compared_case& c) {
  text_table table;
  table.columns = {{"figure"},           {"A", true},    {"B", true}, {"B / A", true},
                   {"from–to", true, 2}, {"n", true, 3}, {"verdict"}};
  table.keys = 1;
  for (const compared_figure& f : c.figures)
    table.rows.push_back(
        {{f.path, value_text(f.path, f.a), value_text(f.path, f.b), fmt::format("{:.3f}", f.ratio.estimate),
          f.p ? fmt::format("{:.3f}–{:.3f}", f.ratio.low, f.ratio.high) : "-", std::to_string(f.repeats), f.verdict},
         ""});
  return table;
}

// The lines above and below a case's table.
struct case_texts {
  std::vector<std::string> above, below;
};

case_texts texts_of(const compared_case& c) {
  case_texts t;
  t.above = {"A: " + c.a, "B: " + c.b};
  for (const std::string& difference : c.differences) t.above.push_back("differs: " + difference);
  if (c.differences.empty()) t.above.emplace_back("no setting, fingerprint or machine differs");
  if (!c.refused.empty()) t.below.push_back("not compared: " + c.refused);
  for (const std::string& note : c.notes) t.below.push_back("note: " + note);
  return t;
}

std::vector<std::string> closing_of(const comparison& c, const std::vector<gate_result>& gates) {
  std::vector<std::string> lines;
  for (const std::string& name : c.unmatched) lines.push_back("without counterpart: " + name);
  if (c.cases.empty()) lines.emplace_back("no two cases have the same swept settings: nothing is compared");
  if (c.tests > 1)
    lines.push_back(fmt::format("{} comparisons at once: p-values are adjusted (Holm), intervals are not", c.tests));
  for (const gate_result& g : gates) lines.push_back(g.text);
  return lines;
}

std::string as_text(const comparison& c, const std::vector<gate_result>& gates, bool markdown, std::size_t width) {
  std::string out;
  const auto add_line = [&](const std::string& text) {
    out += markdown ? "* " + markdown_text(text) + "\n" : fill(text, width, 2);
  };
  for (const compared_case& one : c.cases) {
    const case_texts texts = texts_of(one);
    if (!out.empty()) out += "\n";
    for (const std::string& text : texts.above) add_line(text);
    if (!one.figures.empty()) {
      text_table table = table_of(one);
      if (!markdown) fit(table, width);
      out += "\n" + (markdown ? draw_markdown(table) : draw(table, width));
    }
    if (!texts.below.empty()) out += "\n";
    for (const std::string& text : texts.below) add_line(text);
  }
  const auto closing = closing_of(c, gates);
  if (!closing.empty() && !out.empty()) out += "\n";
  for (const std::string& text : closing) add_line(text);
  return out;
}

json figure_json(const compared_figure& f) {
  return {
      {"figure", f.path},
      {"a", f.a},
      {"b", f.b},
      {"repeats", f.repeats},
      {"ratio",
       {{"estimate", f.ratio.estimate}, {"low", f.ratio.low}, {"high", f.ratio.high}, {"coverage", f.ratio.coverage}}},
      {"p_adjusted", f.p ? json(*f.p) : json(nullptr)},
      {"repeats_needed", f.needed ? json(f.needed) : json(nullptr)},
      {"outcome", name_of(f.outcome)},
      {"verdict", f.verdict}};
}

} // namespace

std::string render_comparison(const comparison& c, const std::vector<gate_result>& gates, format f, std::size_t width) {
  if (f == format::console || f == format::markdown) return as_text(c, gates, f == format::markdown, width);
  json cases = json::array(), rows = json::array();
  for (const compared_case& one : c.cases) {
    json figures = json::array();
    for (const compared_figure& figure : one.figures) {
      figures.push_back(figure_json(figure));
      json& row = rows.emplace_back(figures.back());
      row["case"] = {{"a", one.a}, {"b", one.b}};
    }
    cases.push_back({{"a", one.a},
                     {"b", one.b},
                     {"differences", one.differences},
                     {"refused", one.refused.empty() ? json(nullptr) : json(one.refused)},
                     {"notes", one.notes},
                     {"figures", figures}});
  }
  if (f == format::csv) return render_csv({{"results", rows}});
  json results = json::array();
  for (const gate_result& g : gates) results.push_back({{"text", g.text}, {"failed", g.failed}});
  return document_text(json{{"schema", "regatta.comparison/1"},
                            {"tests", c.tests},
                            {"cases", cases},
                            {"unmatched", c.unmatched},
                            {"gates", results}});
}

} // namespace regatta
