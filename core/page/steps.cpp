// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "page/chart/line_chart.hpp"
#include "page/chart/rows_chart.hpp"
#include "page/sections.hpp"
#include "report/rounded.hpp"
#include "report/stragglers_table.hpp"
#include "results/statistics.hpp"

namespace regatta::page {
namespace {

using nlohmann::json;

// Returns the steps of all repeats of each rank of a case, in seconds.
std::vector<std::vector<double>> steps_by_rank(const json& entry) {
  std::vector<std::vector<double>> ranks;
  for (const json& repeat : repeats_in(entry)) {
    const json by_rank = value_at(repeat, "case.step_seconds.per_rank");
    if (!by_rank.is_array()) continue;
    ranks.resize(std::max(ranks.size(), by_rank.size()));
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank)
      for (const json& seconds : by_rank[rank])
        if (seconds.is_number()) ranks[rank].push_back(seconds);
  }
  return ranks;
}

std::optional<box> box_of(const std::vector<double>& steps, const std::string& name) {
  if (steps.empty()) return std::nullopt;
  box b;
  const double shares[] = {0.1, 0.25, 0.5, 0.75, 0.9};
  for (std::size_t q = 0; q < std::size(shares); ++q) b.quantiles[q] = quantile(steps, shares[q]).value_or(0);
  b.largest = *std::max_element(steps.begin(), steps.end());
  b.tip = fmt::format("{}: median {}, 10 to 90 % {} to {}, longest {}", name, human_seconds(b.quantiles[2]),
                      human_seconds(b.quantiles[0]), human_seconds(b.quantiles[4]), human_seconds(b.largest));
  return b;
}

std::vector<double> joined(const std::vector<std::vector<double>>& ranks) {
  std::vector<double> all;
  for (const auto& steps : ranks) all.insert(all.end(), steps.begin(), steps.end());
  return all;
}

// A row for each rank if all of them fit, else one for each case.
std::optional<figure> distribution(const result_view& r) {
  std::size_t rows = 0;
  double shortest = 1e300, longest = 0;
  for (const std::size_t i : r.measured()) {
    const auto ranks = steps_by_rank(r.entry(i));
    rows += ranks.size();
    for (const double s : joined(ranks)) {
      shortest = std::min(shortest, s);
      longest = std::max(longest, s);
    }
  }
  constexpr double wide = 8; // from this ratio on, a linear axis shows little but the longest step
  const bool each = rows <= most_rows;
  const std::vector<legend_entry> legend = r.legend_of(r.keys());
  rows_chart chart{"steps",
                   each ? "Time of a step, by rank" : "Time of a step",
                   {"step", measure::seconds, longest > wide * shortest, true, {}},
                   {},
                   {},
                   {}};
  for (std::size_t n = 0; n < r.measured().size() && chart.rows.size() < most_rows; ++n) {
    const std::size_t i = r.measured()[n];
    auto ranks = steps_by_rank(r.entry(i));
    if (!each) ranks = {joined(ranks)};
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const std::string of_rank = each ? fmt::format("rank {}", rank) : "";
      const std::string name = r.keys().empty() && each ? of_rank : r.name_of(i) + (each ? ", " + of_rank : "");
      auto b = box_of(ranks[rank], name);
      if (!b) continue;
      if (!each) b->tip.clear();
      chart_row& row = chart.rows.emplace_back();
      row.label = name;
      row.colour = legend[i].second;
      row.begins_block = rank == 0;
      row.marks.emplace_back(*b);
    }
  }
  return draw(chart);
}

// Returns one run of a rank: its first repeat.
std::vector<chart_point> run_of(const json& entry, std::size_t rank) {
  std::vector<chart_point> points;
  const json seconds = value_at(entry, fmt::format("repeats.0.case.step_seconds.per_rank.{}", rank)),
             numbers = value_at(entry, fmt::format("repeats.0.case.step_seconds.steps.{}", rank));
  if (!seconds.is_array() || !numbers.is_array()) return points;
  for (std::size_t s = 0; s < std::min(seconds.size(), numbers.size()); ++s)
    points.push_back({numbers[s], seconds[s], std::nullopt, "", ""});
  return points;
}

std::vector<std::optional<figure>> time_series(const result_view& r) {
  constexpr std::size_t most_panels = 4, most_lines = 60, all_points = 600, most_points = 160;
  const axis x{"step of the timed region", measure::plain, false, false, {}},
      y{"step time", measure::seconds, false, true, {}};
  std::vector<std::optional<figure>> drawn;
  if (r.measured().size() <= most_panels) {
    for (const std::size_t i : r.measured()) {
      line_chart chart{fmt::format("run-{}", i), r.titled("The first repeat, step by step", i), x, y, {}, false, {}};
      for (std::size_t rank = 0; rank < most_lines; ++rank) {
        const auto points = thinned_points(run_of(r.entry(i), rank), most_points);
        if (points.empty()) break;
        const std::string name = fmt::format("rank {}", rank);
        chart.lines.push_back({name, name, rank, points});
      }
      if (chart.lines.size() > 7) // more ranks than colours
        for (chart_line& l : chart.lines) {
          l.group = "";
          l.look = 0;
        }
      drawn.push_back(draw(chart));
    }
    return drawn;
  }
  line_chart chart{"run", "The first repeat, step by step: rank 0", x, y, {}, false, {}};
  const std::size_t lines = r.measured().size();
  const std::vector<legend_entry> legend = r.legend_of(r.keys());
  for (const std::size_t i : r.measured())
    chart.lines.push_back(
        {r.name_of(i), legend[i].first, legend[i].second,
         thinned_points(run_of(r.entry(i), 0), std::clamp<std::size_t>(all_points / lines, 6, most_points)),
         r.mark_name(i)});
  drawn.push_back(draw(chart));
  return drawn;
}

// Returns the rank whose median step is the longest, over the shortest median: "rank 1, 1.04 x".
std::string straggler_of(const std::vector<std::vector<double>>& ranks) {
  double least = 0, most = 0;
  std::size_t slowest = 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto m = median(ranks[rank]);
    if (!m) return "-";
    if (rank == 0 || *m < least) least = *m;
    if (rank == 0 || *m > most) {
      most = *m;
      slowest = rank;
    }
  }
  return ranks.size() < 2 || least <= 0 ? "-" : fmt::format("rank {}, {:.2f} x", slowest, most / least);
}

void write_stragglers(writer& w, const result_view& r) {
  const text_table slow = table_of_stragglers(r.document());
  if (slow.rows.empty()) return;
  w.paragraph("Stragglers: the slowest rank holds the others back. Of each rank: the host, the median of the computing "
              "time of a "
              "step, and in which share of the steps it was the last one that ended its backward pass.");
  page_table table;
  table.keys = slow.keys;
  for (const table_column& c : slow.columns) table.columns.push_back({c.header, "", "", c.right});
  for (const table_row& row : slow.rows) {
    page_row& of = table.rows.emplace_back();
    of.note = row.note;
    for (const std::string& text : row.cells) of.cells.push_back({text, nullptr, ""});
  }
  w.table(table);
}

} // namespace

void write_steps(writer& w, const result_view& r) {
  w.heading("The steps", "steps");
  std::vector<std::optional<figure>> drawn;
  drawn.push_back(distribution(r));
  for (auto& f : time_series(r)) drawn.push_back(std::move(f));
  w.figures(std::move(drawn),
            std::string("Boxes: the middle half of the steps of all repeats, with the median; lines: 10 to 90 %; "
                        "the mark at the right: the longest step.") +
                r.rows_left_out());
  page_table table = r.table_of_cases();
  const std::pair<const char*, const char*> columns[] = {{"median", "step_seconds.median"},
                                                         {"10 %", "step_seconds.p10"},
                                                         {"90 %", "step_seconds.p90"},
                                                         {"99 %", "step_seconds.p99"}};
  for (const auto& [header, path] : columns) {
    if (!r.shows_marks() && std::string_view(path) == "step_seconds.p10") continue; // many cases fill the page
    table.columns.push_back({header, path, "of all counted steps of all workers and repeats", true});
    for (std::size_t i = 0; i < r.size(); ++i)
      table.rows[i].cells.push_back(number_cell(value_at(r.entry(i), path), human_seconds));
  }
  table.columns.push_back({"slowest", "", "the rank with the longest median step, over the shortest median", true});
  for (std::size_t i = 0; i < r.size(); ++i)
    table.rows[i].cells.push_back({straggler_of(steps_by_rank(r.entry(i))), nullptr, ""});
  remove_empty_columns(table);
  w.table(table);
  write_stragglers(w, r);
}

} // namespace regatta::page
