// SPDX-License-Identifier: Apache-2.0
//
// Charts with one row for each case or rank: dots with intervals, waterfalls, distributions.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "page/chart/figure.hpp"
#include "page/chart/scale.hpp"

namespace regatta::page {

// A value with its interval.
struct dot {
  double value = 0;
  std::optional<std::pair<double, double>> interval;
  std::string tip;        // of the marker
  std::string attributes; // markup of the marker: data-case="0"
};

// A step of a waterfall from one value to the next. With `to` > `from` it is a gain: a thin line lower in the row,
// because it goes back over the bars before it. Else it is a loss.
struct bar {
  double from = 0, to = 0;
  std::size_t colour = 0; // index of a series (colour_class())
  std::string tip;
};

// Quantiles of a sample: 10, 25, 50, 75 and 90 %, and the largest value.
struct box {
  std::array<double, 5> quantiles{};
  double largest = 0;
  std::string tip;
};

struct chart_row {
  std::string label;
  std::size_t colour = 0;
  std::vector<std::variant<dot, bar, box>> marks;
  bool begins_block = false; // some room above it
};

struct rows_chart {
  std::string name, title;
  axis x;
  std::vector<legend_entry> legend;
  std::vector<chart_row> rows;
  std::vector<double> also; // values that the axis must contain, such as 1
};

// Draws a chart. Labels stand left of the marks if all are short, else above them. std::nullopt without any mark.
std::optional<figure> draw(const rows_chart& chart);

} // namespace regatta::page
