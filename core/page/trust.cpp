// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.hpp"
#include "page/sections.hpp"
#include "report/cases_table.hpp"
#include "report/fields.hpp"
#include "report/heading.hpp"
#include "report/result_checks.hpp"

namespace regatta::page {
namespace {

using nlohmann::json;
using line_text = std::vector<phrase>;

// A number of a case, with its place in the document.
struct number_of_case {
  double value;
  std::size_t of_case;
  std::string path;
};

phrase phrase_of(const number_of_case& n, std::string (*text)(double)) {
  return {text(n.value), data_attributes(n.of_case, n.path, json(n.value))};
}

// Replaces the number by that of the case if the case has one and `better` prefers it.
template <class Better>
void take(std::optional<number_of_case>& to, const result_view& r, std::size_t of_case, const std::string& path,
          Better better) {
  const auto value = number_at(r.entry(of_case), path);
  if (value && (!to || better(*value, to->value))) to = {*value, of_case, path};
}

constexpr auto larger = [](double a, double b) { return a > b; };
constexpr auto smaller = [](double a, double b) { return a < b; };

// Returns " (the case)" if the result has several.
std::string named(const result_view& r, std::size_t of_case) {
  return r.size() > 1 ? " (" + r.name_of(of_case) + ")" : "";
}

// Returns why each disturbed repeat was disturbed, with the numbers of the repeats.
std::vector<std::string> disturbances_of(const json& entry) {
  std::vector<std::string> texts;
  for (std::size_t n = 0; n < repeats_in(entry).size(); ++n) {
    const json reasons = repeats_in(entry)[n].value("disturbed", json());
    if (!reasons.is_array() || reasons.empty()) continue;
    std::vector<std::string> parts;
    for (const json& reason : reasons) parts.push_back(plain_text(reason));
    texts.push_back(fmt::format("repeat {}: {}", n + 1, join(parts, ", ")));
  }
  return texts;
}

// The figures without the disturbed repeats, and with them.
struct pair_of_figures {
  const char *without, *with, *name;
  std::string (*text)(double);
};
constexpr pair_of_figures of_e = {"undisturbed.efficiency", "efficiency.median", "E changes", ratio_text};
std::string samples_text(double rate) {
  return plain_text(json(rate));
}
constexpr pair_of_figures of_rate = {"undisturbed.samples_per_second", "samples_per_second.median", "samples/s change",
                                     samples_text};

// Returns how many repeats were disturbed, and the case whose figure differs most without them; empty: none was.
line_text disturbed_of(const result_view& r) {
  std::size_t disturbed = 0, all = 0;
  double most = 0;
  const pair_of_figures* of = nullptr;
  std::size_t of_case = 0;
  for (const std::size_t i : r.measured()) {
    const json& entry = r.entry(i);
    all += repeats_in(entry).size();
    disturbed += disturbances_of(entry).size();
    const pair_of_figures& f = number_at(entry, of_e.without) ? of_e : of_rate;
    const auto without = number_at(entry, f.without), with = number_at(entry, f.with);
    if (!without || !with || *without <= 0 || *with <= 0) continue;
    const double difference = std::abs(std::log(*without / *with));
    if (difference <= most) continue;
    most = difference;
    of = &f;
    of_case = i;
  }
  if (disturbed == 0) return {};
  line_text s{{fmt::format("{} of {} repeats disturbed", disturbed, all), ""}};
  if (!of) return s;
  const auto number = [&](const char* path) {
    return phrase_of({number_at(r.entry(of_case), path).value_or(0), of_case, path}, of->text);
  };
  s.push_back({fmt::format(", without which {} most: ", of->name), ""});
  s.push_back(number(of->with));
  s.push_back({" to ", ""});
  s.push_back(number(of->without));
  s.push_back({named(r, of_case), ""});
  return s;
}

// Returns how far figures of equal work lie apart, and what else used the machine.
std::vector<line_text> noise_of(const result_view& r) {
  std::optional<number_of_case> lowest, highest, spread, steal;
  for (const std::size_t i : r.measured()) {
    take(lowest, r, i, "noise.min", smaller);
    take(highest, r, i, "noise.max", larger);
    take(spread, r, i, "samples_per_second.cv", larger);
    for (std::size_t n = 0; n < repeats_in(r.entry(i)).size(); ++n)
      take(steal, r, i, fmt::format("repeats.{}.case.steal", n), larger);
  }
  std::vector<line_text> sentences;
  if (lowest && highest)
    sentences.push_back({{"baseline against itself ", ""},
                         phrase_of(*lowest, ratio_text),
                         {" to ", ""},
                         phrase_of(*highest, ratio_text)});
  if (spread)
    sentences.push_back({{"samples/s spread between repeats by up to ", ""},
                         phrase_of(*spread, percent_text),
                         {named(r, spread->of_case), ""}});
  if (steal)
    sentences.push_back(
        {{"other virtual machines took up to ", ""}, phrase_of(*steal, percent_text), {" of the processor time", ""}});
  if (line_text disturbed = disturbed_of(r); !disturbed.empty()) sentences.push_back(std::move(disturbed));
  return sentences;
}

// Shows the rule, and for each case both figures and the reasons.
void write_disturbed(writer& w, const result_view& r) {
  std::vector<std::vector<std::string>> reasons(r.size());
  bool any = false;
  for (const std::size_t i : r.measured()) any = !(reasons[i] = disturbances_of(r.entry(i))).empty() || any;
  const json rule = r.document().at("context").value("sampling", json());
  if (!any) return;
  w.begin_details("Disturbed repeats: the rule, the reasons, and the figures without them");
  if (rule.is_string()) w.paragraph("The rule, fixed before the first run: " + rule.get<std::string>() + ".");
  if (!r.shows_marks()) return w.end_details(); // the line of noise has the case that changes most
  page_table table = r.table_of_cases();
  table.columns.push_back({"disturbed", "", "of the repeats", true});
  const struct {
    const char *header, *path, *tip;
    std::string (*text)(double);
  } figures[] = {{"samples/s", of_rate.with, "median of all repeats", [](double v) { return plain_text(json(v)); }},
                 {"without", of_rate.without, "median of the others", [](double v) { return plain_text(json(v)); }},
                 {"E", of_e.with, "median of all repeats", ratio_text},
                 {"without", of_e.without, "median of the others", ratio_text}};
  for (const auto& f : figures) table.columns.push_back({f.header, f.path, f.tip, true});
  table.columns.push_back({"reasons", "", "", false, true});
  for (std::size_t i = 0; i < r.size(); ++i) {
    page_row& row = table.rows[i];
    row.cells.push_back({fmt::format("{} of {}", reasons[i].size(), repeats_in(r.entry(i)).size()), nullptr, ""});
    for (const auto& f : figures) row.cells.push_back(number_cell(value_at(r.entry(i), f.path), f.text));
    row.cells.push_back({join(reasons[i], "; "), nullptr, ""});
  }
  remove_empty_columns(table);
  w.table(table);
  w.end_details();
}

} // namespace

void write_trust(writer& w, const result_view& r) {
  constexpr std::size_t all_parts = 3;
  const json& result = r.document();
  const cases_table cases = table_of_cases(result, all_parts);
  const auto one_phrase_each = [](const std::vector<std::string>& texts) {
    std::vector<line_text> sentences;
    for (const std::string& text : texts)
      if (!text.starts_with("noise: ")) sentences.push_back({{text, ""}}); // the line of noise has more of it
    return sentences;
  };
  std::vector<fact> facts;
  if (const auto lines = heading_of(result, cases.constant); !lines.empty()) {
    std::vector<std::string> measured = lines.front();
    for (std::size_t i = 1; i + 1 < lines.size(); ++i)
      measured.insert(measured.end(), lines[i].begin(), lines[i].end());
    facts.push_back({result.value("simulated", false) ? "Simulated" : "Measured", one_phrase_each(measured), {}, ""});
    if (lines.size() > 1) facts.push_back({"Machine", one_phrase_each(lines.back()), {}, ""});
  }
  const auto wrong = check_results(result.at("results"));
  facts.push_back({"Checks", one_phrase_each(verdict_of(result)), wrong, wrong.empty() ? "good" : "bad"});
  facts.push_back({"Noise", noise_of(r), {}, ""});
  const auto warnings = warnings_of(result);
  facts.push_back({"Warnings",
                   one_phrase_each(warnings.empty() ? std::vector<std::string>{"none"} : std::vector<std::string>{}),
                   warnings, ""});
  w.heading("What was measured, and whether to trust it", "trust");
  w.facts(facts);
  write_disturbed(w, r);
}

} // namespace regatta::page
