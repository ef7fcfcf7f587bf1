// SPDX-License-Identifier: Apache-2.0
#include "compare/history.hpp"

#include "base/json.hpp"
#include "compare/samples.hpp"
#include "report/fields.hpp"
#include "report/result_checks.hpp"
#include "report/text_table.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace regatta {
namespace {

using nlohmann::json;

struct point {
  std::string label, date, git, result;
  std::optional<interval> value; // std::nullopt: the case has no such figure there
  std::size_t repeats = 0;
  bool simulated = false;
};

// By case, in the order in which they first appear.
std::vector<std::vector<point>> points_of(const std::vector<compared_result>& results, const std::string& path) {
  std::vector<std::vector<point>> series;
  for (const compared_result& r : results) {
    const json& context = r.document.at("context");
    for (const json& entry : r.document.at("results")) {
      point p;
      p.label = entry.at("case").empty() ? plain_text(field(r.document, entry, "experiment.name")) : case_label(entry);
      if ((p.simulated = entry.value("simulated", false))) p.label += " (simulated)"; // a series of its own
      p.date = plain_text(context.value("date", json()));
      p.git = plain_text(context.value("git", json()));
      p.result = r.name;
      if (has_figures(entry)) {
        const auto samples = samples_of(entry, path);
        p.value = median_interval(samples);
        p.repeats = samples.size();
      }
      const auto same =
          std::find_if(series.begin(), series.end(), [&](const auto& s) { return s[0].label == p.label; });
      if (same == series.end())
        series.push_back({p});
      else
        same->push_back(p);
    }
  }
  return series;
}

// Returns a bar of `columns` at the most, in eighths of a column.
std::string bar(double share, std::size_t columns) {
  static const char* const parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<std::size_t>(std::lround(share * static_cast<double>(columns) * 8));
  std::string text;
  for (std::size_t i = 0; i < eighths / 8; ++i) text += "█";
  return text + parts[eighths % 8];
}

std::string drawn(const std::vector<point>& series, const std::string& path, bool markdown, std::size_t width) {
  double most = 0;
  for (const point& p : series)
    if (p.value) most = std::max(most, p.value->estimate);
  text_table table;
  table.columns = {{"date"}, {"git"}, {path, true}, {"from–to", true, 2}, {"n", true, 3}, {""}, {"result", false, 1}};
  for (const point& p : series) {
    if (!p.value) {
      table.rows.push_back({{p.date, p.git, "-", "-", "-", "", p.result}, ""});
      continue;
    }
    table.rows.push_back(
        {{p.date, p.git, plain_text(p.value->estimate), plain_text(p.value->low) + "–" + plain_text(p.value->high),
          std::to_string(p.repeats), most > 0 ? bar(p.value->estimate / most, 20) : "", p.result},
         ""});
  }
  if (markdown) return markdown_text(series[0].label) + "\n\n" + draw_markdown(table);
  fit(table, width);
  return fill(series[0].label, width, 2) + draw(table, width);
}

} // namespace

std::vector<std::string> history_figures() {
  std::vector<std::string> names;
  for (const figure_kind& kind : compared_figures())
    if (std::string(kind.path) != "seconds_to_loss") names.emplace_back(kind.path);
  return names;
}

std::string render_history(std::vector<compared_result> results, const std::string& path, format f, std::size_t width) {
  std::stable_sort(results.begin(), results.end(), [](const compared_result& a, const compared_result& b) {
    return a.document.at("context").value("date", "") < b.document.at("context").value("date", "");
  });
  const auto series = points_of(results, path);
  if (f == format::console || f == format::markdown) {
    std::string out;
    for (const auto& one : series) out += (out.empty() ? "" : "\n") + drawn(one, path, f == format::markdown, width);
    return out.empty() ? "no case is in these results\n" : out;
  }
  json rows = json::array();
  for (const auto& one : series)
    for (const point& p : one)
      rows.push_back({{"case", p.label},
                      {"date", p.date},
                      {"git", p.git},
                      {"result", p.result},
                      {"figure", path},
                      {"repeats", p.repeats},
                      {"simulated", p.simulated},
                      {"median", p.value ? json(p.value->estimate) : json(nullptr)},
                      {"low", p.value ? json(p.value->low) : json(nullptr)},
                      {"high", p.value ? json(p.value->high) : json(nullptr)}});
  if (f == format::csv) return render_csv({{"results", rows}});
  return document_text(json{{"schema", "regatta.history/1"}, {"points", rows}});
}

} // namespace regatta
