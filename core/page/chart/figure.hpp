// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "page/chart/scale.hpp"
#include "page/chart/svg.hpp"

namespace regatta::page {

// A finished chart, with the data that it shows.
struct figure {
  std::string name; // of its files and its anchor: "efficiency-over-workers"
  std::string title;
  svg drawing;
  double width = 0, height = 0; // pixels
  std::string csv;              // one row per mark, in full precision
};

// In pixels: two figures fit side by side on a page, and text stays legible on a phone.
inline constexpr double figure_width = 480;

// An entry of a legend: a text, and the index of the series whose colour and marker stand beside it.
using legend_entry = std::pair<std::string, std::size_t>;

// The mark beside a text of a legend.
enum class legend_key { line, marked_line, block };

// Draws the title of a figure and below it the legend, in as many lines as it needs; none for fewer than two entries.
// Returns the y below them.
double draw_head(svg& drawing, const std::string& title, const std::vector<legend_entry>& legend, legend_key key,
                 double width = figure_width);

// Writes the texts of the ticks of a horizontal axis below it, at `y`. Where they would overlap, it leaves some out: of
// a linear scale all but every second one, every third one and so on.
void draw_tick_texts(svg& drawing, const scale& x, double y, double width = figure_width);

// Returns a text cut to about this width in pixels; a text that is cut ends in "…".
std::string fitted(const std::string& text, double width, double size = 11);

// Returns a field of a CSV file, in quotes where it needs them.
std::string csv_field(const std::string& text);

} // namespace regatta::page
