// SPDX-License-Identifier: Apache-2.0
//
// Tables of text: laid out in columns for a terminal, or as markdown. Knows nothing of what stands in them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace regatta {

struct table_column {
  std::string header;
  bool right = false;  // aligned
  int dispensable = 0; // left out where the terminal is too narrow, the highest first; 0: never
};

struct table_row {
  std::vector<std::string> cells; // one a column
  std::string note;               // not empty: stands in place of all cells from text_table.keys on
};

struct text_table {
  std::vector<table_column> columns;
  std::vector<table_row> rows;
  std::size_t keys = 0; // the first columns, which say what a row is
};

// Columns that a UTF-8 text takes on a terminal: its code points, so neither wide nor combining ones are foreseen.
std::size_t display_width(std::string_view text);
// At most `width` columns; what is cut ends in "…".
std::string shortened(const std::string& text, std::size_t width);

// Columns that the table takes, notes left aside.
std::size_t width_of(const text_table& table);
// Leaves out dispensable columns until the table fits `width` (0: any); returns their headers.
std::vector<std::string> fit(text_table& table, std::size_t width);

// The columns from `first` up to `end`, after those that say what a row is.
text_table part_of(const text_table& table, std::size_t first, std::size_t end);

// A line a row, each ended by a newline, no blanks before it. Notes wrap at `width` (0: never).
std::string draw(const text_table& table, std::size_t width);
std::string draw_markdown(const text_table& table);
// The text with what Markdown takes for HTML or for the end of a cell (& < > |) written so that it shows as it is.
std::string markdown_text(const std::string& text);

// Items side by side, three blanks between, as many a line as `width` takes (0: all); each line ended by a newline.
std::string flow(const std::vector<std::string>& items, std::size_t width);
// Words filled into lines of `width` (0: one line), the later ones indented; each line ended by a newline. `begin`: the
// column where the first line goes on.
std::string fill(const std::string& text, std::size_t width, std::size_t indent, std::size_t begin = 0);

} // namespace regatta
