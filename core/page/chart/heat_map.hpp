// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "page/chart/figure.hpp"

namespace regatta::page {

struct heat_cell {
  double value = 0;
  std::string text, tip, attributes; // `attributes` as of chart_point
};

// A matrix of values: the larger, the darker. An empty cell has no value.
struct heat_map {
  std::string name, title, row_title, column_title;
  std::vector<std::string> rows, columns;
  std::vector<std::vector<std::optional<heat_cell>>> cells; // by row, then by column
};

// Draws a chart. std::nullopt without any value.
std::optional<figure> draw(const heat_map& map);

} // namespace regatta::page
