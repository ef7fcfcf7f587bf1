// SPDX-License-Identifier: Apache-2.0
#include "page/chart/rows_chart.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "page/chart/look.hpp"

namespace regatta::page {
namespace {

constexpr double longest_side_label = 150, right_room = 14, mark_height = 13, label_height = 14, block_gap = 8;

template <class... F> struct overloaded : F... { using F::operator()...; };
template <class... F> overloaded(F...) -> overloaded<F...>; // clang 14 cannot deduce it

// Calls `each` with every value that a mark draws.
template <class Each> void for_each_value(const std::variant<dot, bar, box>& mark, Each each) {
  std::visit(overloaded{[&](const dot& d) {
                          each(d.value);
                          if (!d.interval) return;
                          each(d.interval->first);
                          each(d.interval->second);
                        },
                        [&](const bar& b) {
                          each(b.from);
                          each(b.to);
                        },
                        [&](const box& b) {
                          for (const double q : b.quantiles) each(q);
                          each(b.largest);
                        }},
             mark);
}

void draw_dot(svg& d, const dot& m, std::size_t colour, const scale& x, double y) {
  if (m.interval)
    d.path(fmt::format("M{0} {2}v6m0-3H{1}m0-3v6", coordinate(x.at(m.interval->first)),
                       coordinate(x.at(m.interval->second)), coordinate(y - 3)),
           "e");
  d.marker(x.at(m.value), y, colour, m.tip, m.attributes);
}

void draw_bar(svg& d, const bar& m, const scale& x, double y) {
  const double from = x.at(m.from), to = x.at(m.to), least = 0.8;
  const double width = std::abs(to - from) < least ? least : to - from;
  // A gain goes back over the bars before it, so it is drawn below them.
  const bool gain = m.to > m.from;
  d.path(fmt::format("M{} {}h{}", coordinate(from), coordinate(gain ? y + 4.2 : y - 2), coordinate(width)),
         (gain ? "gain " : "loss ") + colour_class(m.colour), m.tip);
}

void draw_box(svg& d, const box& m, const scale& x, double y) {
  const auto at = [&](double value) { return coordinate(x.at(value)); };
  const auto& [p10, p25, p50, p75, p90] = m.quantiles;
  d.path(fmt::format("M{0} {4}H{1}M{2} {4}H{3}", at(p10), at(p25), at(p75), at(p90), coordinate(y)), "e");
  d.rect(x.at(p25), y - 5, std::max(x.at(p75) - x.at(p25), 0.8), 10, "box", m.tip);
  d.path(fmt::format("M{0} {1}v10M{2} {3}v4", at(p50), coordinate(y - 5), at(m.largest), coordinate(y - 2)), "l");
}

double draw_axis(svg& d, const scale& x, double left, double top, double base) {
  std::string grid;
  for (const tick& t : x.ticks())
    grid += fmt::format("M{} {}V{}", coordinate(x.at(t.value)), coordinate(top), coordinate(base));
  draw_tick_texts(d, x, base + 14);
  d.path(grid, "grid");
  d.line(left, base, figure_width - right_room, base, "axis");
  d.text(figure_width - right_room, base + 28, x.title(), svg::anchor::end, "dim");
  return base + 34;
}

std::string csv_of(const rows_chart& chart) {
  std::string out = "row,value,low,high,p10,p25,p50,p75,p90,max,from,to\n";
  for (const chart_row& row : chart.rows)
    for (const auto& mark : row.marks)
      out += csv_field(row.label) +
             std::visit(overloaded{[](const dot& m) {
                                     return m.interval ? fmt::format(",{},{},{},,,,,,,,\n", m.value, m.interval->first,
                                                                     m.interval->second)
                                                       : fmt::format(",{},,,,,,,,,,\n", m.value);
                                   },
                                   [](const bar& m) { return fmt::format(",,,,,,,,,,{},{}\n", m.from, m.to); },
                                   [](const box& m) {
                                     std::string quantiles;
                                     for (const double q : m.quantiles) quantiles += fmt::format(",{}", q);
                                     return fmt::format(",,,{},{},,\n", quantiles, m.largest);
                                   }},
                        mark);
  return out;
}

} // namespace

std::optional<figure> draw(const rows_chart& chart) {
  double low = std::numeric_limits<double>::infinity(), high = -low, widest = 0;
  const auto include = [&](double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  };
  for (const chart_row& row : chart.rows) {
    widest = std::max(widest, text_width(row.label));
    for (const auto& mark : row.marks) for_each_value(mark, include);
  }
  if (low > high) return std::nullopt;
  std::for_each(chart.also.begin(), chart.also.end(), include);

  figure f{chart.name, chart.title, {}, figure_width, 0, csv_of(chart)};
  svg& d = f.drawing;
  const double top = draw_head(d, chart.title, chart.legend, legend_key::block) + 8;
  const bool beside = widest <= longest_side_label;
  const double left = beside ? widest + 10 : 10;
  const scale x(chart.x, low, high, left, figure_width - right_room);
  std::vector<double> middles; // of the rows
  double y = top;
  for (const chart_row& row : chart.rows) {
    if (row.begins_block && !middles.empty()) y += block_gap;
    if (!beside && !row.label.empty()) y += label_height;
    middles.push_back(y + mark_height / 2);
    y += mark_height + 5;
  }
  f.height = draw_axis(d, x, left, top, y + 2);
  for (std::size_t i = 0; i < chart.rows.size(); ++i) {
    const chart_row& row = chart.rows[i];
    if (beside)
      d.text(left - 8, middles[i] + 4, row.label, svg::anchor::end);
    else
      d.text(0, middles[i] - mark_height / 2 - 3, fitted(row.label, figure_width), svg::anchor::start, "row");
    d.begin_group(colour_class(row.colour));
    for (const auto& mark : row.marks)
      std::visit(overloaded{[&](const dot& m) { draw_dot(d, m, row.colour, x, middles[i]); },
                            [&](const bar& m) { draw_bar(d, m, x, middles[i]); },
                            [&](const box& m) { draw_box(d, m, x, middles[i]); }},
                 mark);
    d.end_group();
  }
  return f;
}

} // namespace regatta::page
