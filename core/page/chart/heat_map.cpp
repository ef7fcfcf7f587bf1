// SPDX-License-Identifier: Apache-2.0
#include "page/chart/heat_map.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace regatta::page {
namespace {

// Opacity of the lowest and of the highest value. Text stays legible on both, on light and on dark pages.
constexpr double palest = 0.06, darkest = 0.55, row_height = 24;

} // namespace

std::optional<figure> draw(const heat_map& map) {
  double low = std::numeric_limits<double>::infinity(), high = -low, widest = 0;
  for (const auto& row : map.cells)
    for (const auto& cell : row)
      if (cell) {
        low = std::min(low, cell->value);
        high = std::max(high, cell->value);
      }
  if (low > high) return std::nullopt;
  for (const std::string& name : map.rows) widest = std::max(widest, text_width(name));
  figure f{map.name, map.title,
           {},       figure_width,
           0,        fmt::format("{},{},value\n", csv_field(map.row_title), csv_field(map.column_title))};
  svg& d = f.drawing;
  const double top = draw_head(d, map.title, {}, legend_key::block) + 32;
  const double left = std::clamp(std::max(widest, text_width(map.row_title)) + 10, 30.0, 160.0);
  const double width = (figure_width - left) / static_cast<double>(std::max<std::size_t>(map.columns.size(), 1));
  d.text(0, top - 6, fitted(map.row_title, left - 8), svg::anchor::start, "dim");
  d.text(left, top - 20, map.column_title, svg::anchor::start, "dim");
  for (std::size_t c = 0; c < map.columns.size(); ++c)
    d.text(left + (static_cast<double>(c) + 0.5) * width, top - 6, fitted(map.columns[c], width - 4),
           svg::anchor::middle, "dim");
  d.begin_group("c0");
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    const double y = top + static_cast<double>(r) * row_height;
    d.text(left - 8, y + 16, fitted(map.rows[r], left - 10), svg::anchor::end);
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const auto& cell = map.cells[r][c];
      if (!cell) continue;
      f.csv += fmt::format("{},{},{}\n", csv_field(map.rows[r]), csv_field(map.columns[c]), cell->value);
      const double share = high > low ? (cell->value - low) / (high - low) : 0;
      const double x = left + static_cast<double>(c) * width;
      d.shade(x + 1, y + 1, width - 2, row_height - 2, palest + share * (darkest - palest), cell->tip,
              cell->attributes);
      d.text(x + width / 2, y + 16, fitted(cell->text, width), svg::anchor::middle);
    }
  }
  d.end_group();
  f.height = top + static_cast<double>(map.rows.size()) * row_height + 6;
  return f;
}

} // namespace regatta::page
