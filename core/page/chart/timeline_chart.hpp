// SPDX-License-Identifier: Apache-2.0
//
// A chart of what several processes did at which time: a group of rows for each process. All times are in seconds since
// the begin of the step.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "page/chart/figure.hpp"

namespace regatta::page {

inline constexpr double broad_figure_width = 980; // a figure that has the width of the page

struct time_span {
  double begin = 0, end = 0;
  std::size_t colour = 0; // index of a series (colour_class())
  std::string name;       // stands in the span where it is wide enough
  std::string tip;
};

struct time_mark {
  double at = 0;
  std::string tip;
};

struct timeline_row {
  std::string label;
  std::vector<time_span> spans; // ascending and disjoint
  std::vector<time_mark> marks; // short lines
};

struct timeline_group {
  std::string label;
  std::vector<timeline_row> rows; // consecutive ones of one label show it once
};

// A line from a time of one row to that of another.
struct time_arrow {
  std::size_t from_group = 0, from_row = 0, to_group = 0, to_row = 0;
  double from = 0, to = 0;
};

struct timeline_chart {
  std::string name, title;
  std::vector<legend_entry> legend;
  std::vector<timeline_group> groups;
  std::vector<time_arrow> arrows;
  // Neighbours narrower than 0.5 pixels, then 1, 2 ... 32, are joined until at most so many spans and marks are left.
  std::size_t most_shapes = 300;
};

// Draws a chart. std::nullopt without any span.
std::optional<figure> draw(const timeline_chart& chart);

} // namespace regatta::page
