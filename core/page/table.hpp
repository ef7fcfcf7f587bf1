// SPDX-License-Identifier: Apache-2.0
//
// Tables of a page. A number stands there rounded for people, and in full precision as the attribute data-value of its
// cell. The attribute data-path of its column, or of the cell itself, says where it stands in its entry of the result.
// Row n of a table with the attribute data-cases is entry n.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta::page {

struct page_cell {
  std::string text;
  nlohmann::json value; // a number; null: the cell is text
  std::string path;     // of the value, if its column has none
};

struct page_column {
  std::string header, path, tip;
  bool right = true;  // aligned right
  bool wraps = false; // long texts, in several lines
};

struct page_row {
  std::vector<page_cell> cells; // one per column
  std::string note;             // if not empty, replaces the cells from page_table::keys on
};

struct page_table {
  std::vector<page_column> columns;
  std::vector<page_row> rows;
  std::size_t keys = 0;  // number of first columns, which identify a row
  bool of_cases = false; // the rows are the entries of a result
};

// Removes columns behind the keys in which no cell has a value or a text other than "-".
void remove_empty_columns(page_table& table);

// Returns the table as markup; empty without rows or without a column behind the keys.
std::string markup_of(const page_table& table);

// Returns the table as Markdown with an empty line after it; empty as markup_of().
std::string markdown_of(const page_table& table);

// Returns the cell of a number; "-" if it is none.
page_cell number_cell(const nlohmann::json& value, const std::function<std::string(double)>& text,
                      const std::string& path = "");

// Formats of numbers.
std::string ratio_text(double ratio);   // "0.85"
std::string percent_text(double share); // of 0.133: "13.3 %"
std::string loss_text(double loss);     // three significant digits

} // namespace regatta::page
