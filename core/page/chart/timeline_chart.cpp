// SPDX-License-Identifier: Apache-2.0
#include "page/chart/timeline_chart.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "page/chart/look.hpp"
#include "page/chart/scale.hpp"

namespace regatta::page {
namespace {

constexpr double band_height = 15, band_gap = 2, group_gap = 12, room_at_right = 14, least_width = 0.6,
                 room_of_text = 6;

// Joins neighbours that are less than `apart` pixels from each other: of one colour if one of them is that narrow too,
// else if both together are; the wider one gives colour and name.
std::vector<time_span> merged(const std::vector<time_span>& spans, const scale& x, double apart) {
  std::vector<time_span> out;
  double widest = 0; // of those in the last one
  for (const time_span& s : spans) {
    const double width = x.at(s.end) - x.at(s.begin);
    const auto joins = [&](const time_span& last) {
      if (x.at(s.begin) - x.at(last.end) >= apart) return false;
      if (last.colour == s.colour) return std::min(x.at(last.end) - x.at(last.begin), width) < apart;
      return x.at(s.end) - x.at(last.begin) < apart;
    };
    if (out.empty() || !joins(out.back())) {
      out.push_back(s);
      widest = width;
      continue;
    }
    const double begin = out.back().begin;
    if (width > widest) {
      out.back() = s;
      out.back().begin = begin;
      widest = width;
    }
    out.back().end = s.end;
  }
  return out;
}

std::size_t shapes_of(const std::vector<timeline_group>& groups) {
  std::size_t shapes = 0;
  for (const timeline_group& g : groups)
    for (const timeline_row& r : g.rows) shapes += r.spans.size() + r.marks.size();
  return shapes;
}

// Returns groups with at most about `most` shapes.
std::vector<timeline_group> reduced(std::vector<timeline_group> groups, const scale& x, std::size_t most) {
  constexpr double widest = 32;
  double apart = 0.5;
  while (apart <= widest) {
    for (timeline_group& g : groups)
      for (timeline_row& r : g.rows) r.spans = merged(r.spans, x, apart);
    if (shapes_of(groups) <= most) break;
    apart *= 2;
  }
  return groups;
}

void draw_row(svg& d, const timeline_row& row, const scale& x, double y) {
  for (const time_span& s : row.spans) {
    const double from = x.at(s.begin), width = std::max(x.at(s.end) - from, least_width);
    d.begin_group(colour_class(s.colour));
    d.rect(from, y, width, band_height, "span", s.tip);
    d.end_group();
    if (text_width(s.name, 10) + room_of_text < width)
      d.text(from + width / 2, y + band_height - 4, s.name, svg::anchor::middle, "small");
  }
  for (const time_mark& m : row.marks) {
    const std::string at = coordinate(x.at(m.at));
    d.path(fmt::format("M{} {}v{}", at, coordinate(y - 1), coordinate(band_height + 2)), "mark", m.tip);
  }
}

std::string csv_of(const timeline_chart& chart) {
  std::string out = "process,row,name,begin,end\n";
  for (const timeline_group& g : chart.groups)
    for (const timeline_row& r : g.rows) {
      const auto add = [&](const std::string& name, double begin, double end) {
        out += fmt::format("{},{},{},{},{}\n", csv_field(g.label), csv_field(r.label), csv_field(name), begin, end);
      };
      for (const time_span& s : r.spans) add(s.name, s.begin, s.end);
      for (const time_mark& m : r.marks) add(m.tip, m.at, m.at);
    }
  return out;
}

} // namespace

std::optional<figure> draw(const timeline_chart& chart) {
  double low = std::numeric_limits<double>::infinity(), high = -low, widest = 0;
  for (const timeline_group& g : chart.groups) {
    widest = std::max(widest, text_width(g.label));
    for (const timeline_row& r : g.rows) {
      widest = std::max(widest, text_width(r.label));
      for (const time_span& s : r.spans) {
        low = std::min(low, s.begin);
        high = std::max(high, s.end);
      }
    }
  }
  if (low > high) return std::nullopt;
  figure f{chart.name, chart.title, {}, broad_figure_width, 0, csv_of(chart)};
  svg& d = f.drawing;
  const double top = draw_head(d, chart.title, chart.legend, legend_key::block, broad_figure_width) + 4,
               left = widest + 10;
  const scale x({"time since the begin of the step", measure::seconds, false, false, {}}, low, high, left,
                broad_figure_width - room_at_right);
  const std::vector<timeline_group> groups = reduced(chart.groups, x, chart.most_shapes);
  // The y of each row.
  std::vector<std::vector<double>> places;
  double y = top;
  for (const timeline_group& g : groups) {
    y += band_height; // for the label
    auto& of_group = places.emplace_back();
    for (std::size_t r = 0; r < g.rows.size(); ++r) {
      of_group.push_back(y);
      y += band_height + band_gap;
    }
    y += group_gap;
  }
  const double base = y - group_gap + 2;
  std::string grid;
  for (const tick& t : x.ticks())
    grid += fmt::format("M{} {}V{}", coordinate(x.at(t.value)), coordinate(top), coordinate(base));
  draw_tick_texts(d, x, base + 14, broad_figure_width);
  d.path(grid, "grid");
  d.line(left, base, broad_figure_width - room_at_right, base, "axis");
  d.text(broad_figure_width - room_at_right, base + 28, x.title(), svg::anchor::end, "dim");
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (!places[g].empty()) d.text(0, places[g].front() - 4, groups[g].label);
    for (std::size_t r = 0; r < groups[g].rows.size(); ++r) {
      const timeline_row& row = groups[g].rows[r];
      if (r == 0 || groups[g].rows[r - 1].label != row.label)
        d.text(left - 8, places[g][r] + band_height - 4, row.label, svg::anchor::end, "dim");
      draw_row(d, row, x, places[g][r]);
    }
  }
  std::string arrows;
  for (const time_arrow& a : chart.arrows) {
    const double from = places[a.from_group][a.from_row], to = places[a.to_group][a.to_row];
    arrows += fmt::format("M{} {}L{} {}", coordinate(x.at(a.from)), coordinate(from < to ? from + band_height : from),
                          coordinate(x.at(a.to)), coordinate(from < to ? to : to + band_height));
  }
  if (!arrows.empty()) d.path(arrows, "arrow");
  f.height = base + 34;
  return f;
}

} // namespace regatta::page
