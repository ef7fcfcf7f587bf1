// SPDX-License-Identifier: Apache-2.0
#include "page/chart/line_chart.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "page/chart/look.hpp"

namespace regatta::page {
namespace {

constexpr double plot_height = 190, bottom = 34, right_margin = 12, cap = 3, apart = 4;

struct extent {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();

  void add(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool known() const { return low <= high; }
};

bool is_drawn(const chart_point& p) {
  return std::isfinite(p.x) && std::isfinite(p.y);
}

// Returns the groups in the order of their first lines.
std::vector<legend_entry> legend_of(const line_chart& chart) {
  std::vector<legend_entry> legend;
  for (const chart_line& l : chart.lines)
    if (const legend_entry entry{l.group, l.look}; std::find(legend.begin(), legend.end(), entry) == legend.end())
      legend.push_back(entry);
  return legend;
}

double widest_of(const std::vector<tick>& ticks) {
  double widest = 0;
  for (const tick& t : ticks) widest = std::max(widest, text_width(t.text));
  return widest;
}

void draw_axes(svg& d, const scale& x, const scale& y, double left, double top) {
  const double end = figure_width - right_margin, base = top + plot_height;
  std::string grid, axis_ticks;
  for (const tick& t : y.ticks()) {
    grid += fmt::format("M{} {}H{}", coordinate(left), coordinate(y.at(t.value)), coordinate(end));
    d.text(left - 6, y.at(t.value) + 4, t.text, svg::anchor::end, "dim");
  }
  for (const tick& t : x.ticks()) axis_ticks += fmt::format("M{} {}v4", coordinate(x.at(t.value)), coordinate(base));
  draw_tick_texts(d, x, base + 15);
  d.path(grid, "grid");
  d.path(fmt::format("M{} {}H{}{}", coordinate(left), coordinate(base), coordinate(end), axis_ticks), "axis");
  d.text(0, top - 9, y.title(), svg::anchor::start, "dim");
  d.text(end, base + 29, x.title(), svg::anchor::end, "dim");
}

void draw_reference(svg& d, const chart_reference& r, const scale& y, double left) {
  const double end = figure_width - right_margin, at = y.at(r.y);
  d.line(left, at, end, at, "ref");
  d.text(left + 4, at > y.at(y.high()) + 20 ? at - 4 : at + 12, r.text, // not over the title of the axis
         svg::anchor::start, "row", r.attributes);
}

// Draws an interval as a vertical bar, with caps unless there are very many.
void add_interval(course& errors, const std::pair<double, double>& interval, double x, const scale& y, bool caps) {
  const double low = y.at(interval.first), high = y.at(interval.second);
  errors.move(x, low);
  errors.line(x, high);
  if (!caps) return;
  for (const double end : {low, high}) {
    errors.move(x - cap, end);
    errors.line(x + cap, end);
  }
}

void draw_line(svg& d, const chart_line& line, const scale& x, const scale& y, bool markers, double shift,
               bool crowded) {
  const double grid = crowded ? 1 : 0.1;
  course points(grid), errors(grid);
  bool open = false;
  for (const chart_point& p : line.points) {
    if (!is_drawn(p)) {
      open = false;
      continue;
    }
    const double at = x.at(p.x) + shift;
    open ? points.line(at, y.at(p.y)) : points.move(at, y.at(p.y));
    open = true;
    if (p.interval) add_interval(errors, *p.interval, at, y, !crowded);
  }
  d.path(points.text(), "", line.tip.empty() ? line.name : line.tip);
  if (!errors.text().empty()) d.path(errors.text(), "e");
  if (!markers) return;
  for (const chart_point& p : line.points)
    if (is_drawn(p)) d.marker(x.at(p.x) + shift, y.at(p.y), line.look, p.tip, p.attributes);
}

// Draws all lines, those of one look in one group.
void draw_lines(svg& d, const line_chart& chart, const scale& x, const scale& y) {
  std::size_t points = 0;
  bool intervals = false;
  for (const chart_line& l : chart.lines) {
    points += l.points.size();
    intervals = intervals || std::any_of(l.points.begin(), l.points.end(),
                                         [](const chart_point& p) { return p.interval.has_value(); });
  }
  constexpr std::size_t many_points = 600, many_intervals = 60;
  const bool crowded = chart.lines.size() > colours && points > (intervals ? many_intervals : many_points);
  // Marks at the same x stand side by side, so that their intervals can be told apart.
  const std::size_t side_by_side = intervals && chart.lines.size() <= colours ? chart.lines.size() : 1;
  std::vector<std::size_t> order(chart.lines.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return chart.lines[a].look < chart.lines[b].look; });
  for (std::size_t n = 0; n < order.size(); ++n) {
    const chart_line& line = chart.lines[order[n]];
    const bool begins = n == 0 || chart.lines[order[n - 1]].look != line.look;
    if (begins && n > 0) d.end_group();
    if (begins) d.begin_group("ls " + colour_class(line.look));
    const double place = static_cast<double>(order[n] % side_by_side) - static_cast<double>(side_by_side - 1) / 2;
    draw_line(d, line, x, y, chart.markers, place * apart, crowded);
  }
  if (!order.empty()) d.end_group();
}

std::string csv_of(const line_chart& chart) {
  std::string out = fmt::format("line,{},{},low,high\n", csv_field(chart.x.title), csv_field(chart.y.title));
  for (const chart_line& l : chart.lines)
    for (const chart_point& p : l.points)
      out += fmt::format("{},{},{},{},{}\n", csv_field(l.name), p.x, p.y,
                         p.interval ? fmt::format("{}", p.interval->first) : "",
                         p.interval ? fmt::format("{}", p.interval->second) : "");
  for (const chart_reference& r : chart.references) out += fmt::format("{},,{},,\n", csv_field(r.text), r.y);
  return out;
}

} // namespace

std::optional<figure> draw(const line_chart& chart) {
  extent xs, ys;
  for (const chart_line& l : chart.lines)
    for (const chart_point& p : l.points) {
      if (!is_drawn(p)) continue;
      xs.add(p.x);
      ys.add(p.y);
      if (p.interval) {
        ys.add(p.interval->first);
        ys.add(p.interval->second);
      }
    }
  if (!xs.known() || !ys.known()) return std::nullopt;
  for (const double value : chart.also) ys.add(value);
  for (const chart_reference& r : chart.references) ys.add(r.y);
  figure f{chart.name, chart.title, {}, figure_width, 0, csv_of(chart)};
  const std::vector<legend_entry> legend = legend_of(chart);
  const legend_key key = chart.markers ? legend_key::marked_line : legend_key::line;
  const double top = draw_head(f.drawing, chart.title, legend, key) + 24;
  const scale y(chart.y, ys.low, ys.high, top + plot_height, top);
  const double left = std::max(30.0, widest_of(y.ticks()) + 10), inset = chart.markers ? 14 : 0;
  const scale x(chart.x, xs.low, xs.high, left + inset, figure_width - right_margin - inset);
  draw_axes(f.drawing, x, y, left, top);
  if (chart.lines.size() > colours) f.drawing.begin_group("thin");
  draw_lines(f.drawing, chart, x, y);
  if (chart.lines.size() > colours) f.drawing.end_group();
  for (const chart_reference& r : chart.references) draw_reference(f.drawing, r, y, left);
  f.height = top + plot_height + bottom;
  return f;
}

std::vector<chart_point> thinned_points(const std::vector<chart_point>& points, std::size_t most) {
  if (points.size() <= most || most < 4) return points;
  const std::size_t runs = (most - 2) / 2, inner = points.size() - 2;
  std::vector<chart_point> kept{points.front()};
  for (std::size_t r = 0; r < runs; ++r) {
    const std::size_t begin = 1 + r * inner / runs, end = 1 + (r + 1) * inner / runs;
    if (begin == end) continue;
    const auto [low, high] = std::minmax_element(points.begin() + static_cast<std::ptrdiff_t>(begin),
                                                 points.begin() + static_cast<std::ptrdiff_t>(end),
                                                 [](const auto& a, const auto& b) { return a.y < b.y; });
    kept.push_back(std::min(*low, *high, [](const auto& a, const auto& b) { return a.x < b.x; }));
    if (low->x != high->x) kept.push_back(low->x < high->x ? *high : *low);
  }
  kept.push_back(points.back());
  return kept;
}

} // namespace regatta::page
