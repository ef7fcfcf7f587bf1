// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "page/chart/look.hpp"
#include "page/chart/rows_chart.hpp"
#include "page/sections.hpp"
#include "report/fields.hpp"

namespace regatta::page {
namespace {

using nlohmann::json;

struct loss_part {
  const char *member, *name;
  std::size_t colour;
};

// In the order of the waterfall. "blocked" is there in place of wait and communication.
constexpr loss_part loss_parts[] = {{"compute", "compute", 0},
                                    {"wait", "wait", 1},
                                    {"exposed_communication", "communication", 2},
                                    {"blocked", "blocked", no_series},
                                    {"update", "update", 3},
                                    {"input", "input", 4},
                                    {"other", "other", 5}};
constexpr std::size_t colour_of_e = 6;

// Draws one waterfall a case, from 1 by way of each cause to E.
std::optional<figure> waterfalls(const result_view& r) {
  rows_chart chart{
      "lost", "Where the efficiency went, from 1 down to E", {"E", measure::plain, false, true, {}}, {}, {}, {1}};
  for (const loss_part& part : loss_parts)
    if (part.colour != no_series || std::ranges::any_of(r.measured(), [&](std::size_t i) {
          return number_at(r.entry(i), "lost.blocked").has_value();
        }))
      chart.legend.emplace_back(part.name, part.colour);
  for (const std::size_t i : r.measured()) {
    if (chart.rows.size() == most_rows) break;
    const json& entry = r.entry(i);
    const auto efficiency = number_at(entry, "efficiency.median");
    if (!efficiency || !entry.value("lost", json()).is_object()) continue;
    chart_row& row = chart.rows.emplace_back();
    row.label = r.name_of(i);
    row.colour = colour_of_e;
    double at = 1;
    for (const loss_part& part : loss_parts) {
      const double share = number_at(entry, std::string("lost.") + part.member).value_or(0);
      if (share != 0)
        row.marks.push_back(bar{at, at - share, part.colour,
                                r.shows_marks() ? fmt::format("{} {}", part.name, percent_text(share)) : ""});
      at -= share;
    }
    row.marks.push_back(dot{*efficiency, std::nullopt, "E " + ratio_text(*efficiency),
                            data_attributes(i, "efficiency.median", json(*efficiency))});
  }
  return draw(chart);
}

void write_ledger(writer& w, const result_view& r) {
  page_table table = r.table_of_cases();
  const auto add = [&](const std::string& header, const std::string& path, const std::string& tip, auto text) {
    table.columns.push_back({header, path, tip, true});
    for (std::size_t i = 0; i < r.size(); ++i)
      table.rows[i].cells.push_back(number_cell(value_at(r.entry(i), path), text));
  };
  for (const loss_part& part : loss_parts)
    add(part.name, std::string("lost.") + part.member, "share of E lost to it; a gain is negative", percent_text);
  if (r.shows_marks()) // else only the table of all cases has it
    add("E", "efficiency.median", "1 less all of these", percent_text);
  add("E none", "contention.median", "of as many workers that exchange nothing: a bound for E", ratio_text);
  if (r.shows_marks()) // many cases fill the page
    add("E/E none", "efficiency_over_contention.median", "what strategy and transport keep of that bound", ratio_text);
  remove_empty_columns(table);
  w.table(table);
}

} // namespace

void write_losses(writer& w, const result_view& r) {
  w.heading("Why it is not faster", "losses");
  std::optional<figure> chart = waterfalls(r);
  const bool known = chart.has_value();
  std::vector<std::optional<figure>> drawn;
  drawn.push_back(std::move(chart));
  w.figures(std::move(drawn),
            std::string("Read from the right: each cause takes its share of 1, and the marker is E. A thin bar goes "
                        "back to the right: that part took less time than in the baseline, as updates do when "
                        "servers make them.") +
                r.rows_left_out());
  if (known)
    write_ledger(w, r);
  else
    w.paragraph("No case has a baseline, so there is no efficiency to explain.");
  write_bounds(w, r);
}

} // namespace regatta::page
