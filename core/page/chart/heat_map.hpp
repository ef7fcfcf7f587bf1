// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "page/chart/figure.hpp"

namespace regatta::page {

struct heat_cell {
  double value = 0;
  std::string text;       // is written in the cell
  std::string tip;        // is shown when the pointer is over the cell
  std::string attributes; // markup of the cell's element, already escaped: data-case="0"; may be empty
};

// A matrix of values: the larger, the darker. A cell that is std::nullopt has no value, and is left blank.
struct heat_map {
  std::string name; // of the figure: of its files and its anchor
  std::string title, row_title, column_title;
  std::vector<std::string> rows, columns;                   // their names
  std::vector<std::vector<std::optional<heat_cell>>> cells; // [rows][columns]
};

// Draws a chart. Returns std::nullopt if no cell has a value.
std::optional<figure> draw(const heat_map& map);

} // namespace regatta::page
