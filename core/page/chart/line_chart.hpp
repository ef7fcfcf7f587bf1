// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "page/chart/figure.hpp"
#include "page/chart/scale.hpp"

namespace regatta::page {

struct chart_point {
  double x = 0, y = 0;
  std::optional<std::pair<double, double>> interval; // of y
  std::string tip;
  std::string attributes; // markup of the marker: data-case="0"
};

struct chart_line {
  std::string name;     // in the first column of the figure's CSV
  std::string group;    // its entry in the legend
  std::size_t look = 0; // index of its colour and marker; the same for all lines of a group
  std::vector<chart_point> points;
  std::string tip = {}; // of the line; empty: its name
};

// A horizontal line with a text at its left end: a bound or another value to compare with.
struct chart_reference {
  double y = 0;
  std::string text;
  std::string attributes; // as of chart_point
};

struct line_chart {
  std::string name, title;
  axis x, y;
  std::vector<chart_line> lines;
  bool markers = true;      // without: curves of many points
  std::vector<double> also; // values that the y axis must contain, such as 1
  std::vector<chart_reference> references = {};
};

// Draws a chart; a point that is not finite leaves a gap in its line. std::nullopt without any finite point.
std::optional<figure> draw(const line_chart& chart);

// Selects at most `most` of the points, which are in order of x: of each of equally long runs of points the lowest and
// the highest, so that spikes stay; and the first and the last point. No point is changed. With `most` < 4 returns all.
std::vector<chart_point> thinned_points(const std::vector<chart_point>& points, std::size_t most);

} // namespace regatta::page
