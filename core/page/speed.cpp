// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "page/chart/heat_map.hpp"
#include "page/chart/line_chart.hpp"
#include "page/chart/rows_chart.hpp"
#include "page/sections.hpp"
#include "report/fields.hpp"
#include "report/pivot.hpp"
#include "report/result_checks.hpp"
#include "report/rounded.hpp"

namespace regatta::page {
namespace {

using nlohmann::json;

// A figure of a case that is drawn over the swept keys.
struct shown_figure {
  std::string member, title, unit;
  bool ratio;
};

const shown_figure shown[] = {{"samples_per_second", "Throughput", "samples/s", false},
                              {"efficiency", "Efficiency E", "E", true}};

std::string number_text(double value, bool ratio) {
  return ratio ? ratio_text(value) : plain_text(json(value));
}

std::string tip_of(const result_view& r, std::size_t i, const shown_figure& f) {
  if (!r.shows_marks()) return "";
  const json& entry = r.entry(i);
  const double value = number_at(entry, f.member + ".median").value_or(0);
  std::string tip = fmt::format("{}: {} {}", r.name_of(i), f.ratio ? f.unit : number_text(value, false),
                                f.ratio ? number_text(value, true) : f.unit);
  if (const auto interval = interval_at(entry, f.member))
    tip += fmt::format(", interval {} to {}", number_text(interval->first, f.ratio),
                       number_text(interval->second, f.ratio));
  return tip;
}

std::string mark_attributes(const result_view& r, std::size_t i, const shown_figure& f) {
  const std::string path = f.member + ".median";
  return r.shows_marks() ? data_attributes(i, path, value_at(r.entry(i), path)) : "";
}

// Returns the swept keys with at least two values that are all numbers or sizes.
std::vector<std::string> numeric_keys(const result_view& r) {
  std::vector<std::string> keys;
  for (const std::string& key : r.keys()) {
    std::set<double> values;
    const bool numbers = std::all_of(r.measured().begin(), r.measured().end(), [&](std::size_t i) {
      const auto number = swept_number(key, r.value_of(i, key));
      if (number) values.insert(number->first);
      return number.has_value();
    });
    if (numbers && values.size() > 1) keys.push_back(key);
  }
  return keys;
}

// Returns the swept keys that tell the lines of a chart over `key` apart. A key that changes only together with it, as
// in a zipped sweep, tells none.
std::vector<std::string> keys_of_lines(const result_view& r, const std::string& key) {
  std::vector<std::string> keys;
  for (const std::string& other : r.keys()) {
    if (other == key) continue;
    std::map<std::string, std::set<std::string>> values;
    for (const std::size_t i : r.measured())
      values[plain_text(r.value_of(i, key))].insert(plain_text(r.value_of(i, other)));
    if (std::any_of(values.begin(), values.end(), [](const auto& v) { return v.second.size() > 1; }))
      keys.push_back(other);
  }
  return keys;
}

axis axis_of(const result_view& r, const std::string& key) {
  std::set<double> values;
  measure kind = measure::plain;
  for (const std::size_t i : r.measured())
    if (const auto number = swept_number(key, r.value_of(i, key))) {
      values.insert(number->first);
      kind = number->second;
    }
  axis a{short_name(key), kind, false, false, {}};
  constexpr double wide = 6; // from this ratio on, equal factors are equally far apart
  a.log = values.size() > 2 && *values.begin() > 0 && *values.rbegin() / *values.begin() >= wide;
  if (values.size() <= 12) a.at.assign(values.begin(), values.end());
  return a;
}

std::optional<figure> over_key(const result_view& r, const std::string& key, const shown_figure& f) {
  const std::vector<std::string> others = keys_of_lines(r, key);
  line_chart chart{fmt::format("{}-over-{}", f.member, short_name(key)),
                   f.title + " over " + short_name(key),
                   axis_of(r, key),
                   {f.unit, measure::plain, false, true, {}},
                   {},
                   true,
                   {}};
  if (f.ratio) chart.also = {1};
  std::vector<std::string> names;
  const std::vector<legend_entry> legend = r.legend_of(others);
  for (const std::size_t i : r.measured()) {
    const auto y = number_at(r.entry(i), f.member + ".median");
    const auto x = swept_number(key, r.value_of(i, key));
    if (!y || !x) continue;
    const std::string name = others.empty() ? f.unit : r.name_of(i, others);
    std::size_t at = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    if (at == names.size()) {
      names.push_back(name);
      chart.lines.push_back({name, legend[i].first, legend[i].second, {}});
    }
    chart.lines[at].points.push_back(
        {x->first, *y, interval_at(r.entry(i), f.member), tip_of(r, i, f), mark_attributes(r, i, f)});
  }
  for (chart_line& l : chart.lines)
    std::stable_sort(l.points.begin(), l.points.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
  return draw(chart);
}

std::optional<figure> dots_of(const result_view& r, const shown_figure& f) {
  rows_chart chart{f.member, f.title, {f.unit, measure::plain, false, true, {}}, {}, {}, {}};
  if (f.ratio) chart.also = {1};
  for (const std::size_t i : r.measured()) {
    if (chart.rows.size() == most_rows) break;
    const auto value = number_at(r.entry(i), f.member + ".median");
    if (!value) continue;
    chart_row& row = chart.rows.emplace_back();
    row.label = r.name_of(i);
    row.marks.emplace_back(dot{*value, interval_at(r.entry(i), f.member), tip_of(r, i, f), mark_attributes(r, i, f)});
  }
  return draw(chart);
}

// Returns E over the first two numeric keys, for each combination of the other keys.
std::vector<std::optional<figure>> maps_of(const result_view& r, const std::vector<std::string>& numeric) {
  constexpr std::size_t most_maps = 4, most_columns = 10;
  std::vector<std::string> others;
  for (const std::string& key : r.keys())
    if (key != numeric[0] && key != numeric[1]) others.push_back(key);
  std::vector<heat_map> maps;
  std::vector<std::string> names, rows, columns;
  const auto place = [](std::vector<std::string>& all, const std::string& text) {
    const auto found = std::find(all.begin(), all.end(), text);
    const auto at = static_cast<std::size_t>(found - all.begin());
    if (found == all.end()) all.push_back(text);
    return at;
  };
  for (const std::size_t i : r.measured()) {
    place(rows, plain_text(r.value_of(i, numeric[0])));
    place(columns, plain_text(r.value_of(i, numeric[1])));
  }
  if (rows.size() > most_rows || columns.size() > most_columns) return {};
  for (const std::size_t i : r.measured()) {
    const json value = value_at(r.entry(i), "efficiency.median");
    if (!value.is_number()) continue;
    const std::size_t m = place(names, others.empty() ? "" : r.name_of(i, others));
    if (m == maps.size())
      maps.push_back({fmt::format("efficiency-map-{}", m + 1),
                      "E by " + short_name(numeric[0]) + " and " + short_name(numeric[1]) +
                          (names[m].empty() ? "" : ": " + names[m]),
                      short_name(numeric[0]), short_name(numeric[1]), rows, columns,
                      std::vector(rows.size(), std::vector<std::optional<heat_cell>>(columns.size()))});
    maps[m].cells[place(rows, plain_text(r.value_of(i, numeric[0])))]
                 [place(columns, plain_text(r.value_of(i, numeric[1])))] =
        heat_cell{value, ratio_text(value), tip_of(r, i, shown[1]), mark_attributes(r, i, shown[1])};
  }
  std::vector<std::optional<figure>> drawn;
  for (std::size_t m = 0; m < std::min(maps.size(), most_maps); ++m) drawn.push_back(draw(maps[m]));
  return drawn;
}

void write_table(writer& w, const result_view& r) {
  page_table table = r.table_of_cases(true);
  const auto add = [&](const std::string& header, const std::string& path, const std::string& tip, auto text) {
    table.columns.push_back({header, path, tip, true});
    for (std::size_t i = 0; i < r.size(); ++i)
      table.rows[i].cells.push_back(number_cell(value_at(r.entry(i), path), text));
  };
  const auto plain = [](double v) { return plain_text(json(v)); };
  add("samples/s", "samples_per_second.median", "median of the repeats", plain);
  add("from", "samples_per_second.low", "interval of the median", plain);
  add("to", "samples_per_second.high", "interval of the median", plain);
  if (r.shows_marks()) { // many cases fill the page
    add("± cv", "samples_per_second.cv", "coefficient of variation between repeats", percent_text);
    add("1 worker", "baseline_samples_per_second.median", "samples/s of one worker without communication", plain);
  }
  add("E", "efficiency.median", "samples/s over workers x baseline", ratio_text);
  add("from", "efficiency.low", "interval of the median", ratio_text);
  add("to", "efficiency.high", "interval of the median", ratio_text);
  add("detectable", "efficiency.smallest_detectable", "smallest change of E that so many repeats can find",
      percent_text);
  if (r.shows_marks()) add("repeats", "samples_per_second.n", "", plain);
  for (const std::size_t i : r.measured()) {
    const json metric = r.entry(i).value("metric", json());
    if (!metric.is_object()) continue;
    add(plain_text(metric.value("name", json("metric"))), "metric.value", "after the last step", loss_text);
    break;
  }
  add("loss", "loss.last", "of the last step", loss_text);
  remove_empty_columns(table);
  w.table(table);
}

void write_pivots(writer& w, const json& result) {
  for (const pivot_table& pivot : pivot_tables(result)) {
    w.subheading(pivot.title);
    page_table table;
    table.keys = pivot.table.keys;
    for (const table_column& c : pivot.table.columns) table.columns.push_back({c.header, "", "", c.right});
    for (std::size_t row = 0; row < pivot.table.rows.size(); ++row) {
      page_row& to = table.rows.emplace_back();
      for (std::size_t c = 0; c < table.columns.size(); ++c)
        to.cells.push_back({pivot.table.rows[row].cells[c], pivot.values[row][c], ""});
    }
    w.table(table);
    for (const std::string& note : pivot.notes) w.paragraph(note);
  }
}

} // namespace

void write_speed(writer& w, const result_view& r) {
  w.heading("How fast, and how well it scaled", "speed");
  const std::vector<std::string> numeric = numeric_keys(r);
  std::vector<std::optional<figure>> drawn;
  for (const std::string& key : numeric)
    for (const shown_figure& f : shown) drawn.push_back(over_key(r, key, f));
  if (numeric.empty())
    for (const shown_figure& f : shown) drawn.push_back(dots_of(r, f));
  if (numeric.size() >= 2)
    for (auto& map : maps_of(r, numeric)) drawn.push_back(std::move(map));
  std::string text = "Bars: interval of the median over the repeats. E is samples/s over that of one worker without "
                     "communication, times the workers: 1 is perfect.";
  if (numeric.empty()) text += r.rows_left_out();
  w.figures(std::move(drawn), text);
  write_pivots(w, r.document());
  w.subheading("All cases");
  write_table(w, r);
}

} // namespace regatta::page
