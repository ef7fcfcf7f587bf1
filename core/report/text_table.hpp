// SPDX-License-Identifier: Apache-2.0
//
// Formats tables of text: in columns for a terminal, or as markdown. Independent of their content.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace regatta {

struct table_column {
  std::string header;
  bool right = false;  // aligned right
  int dispensable = 0; // left out if the terminal is too narrow, the highest first; 0: never
};

struct table_row {
  std::vector<std::string> cells; // one per column
  std::string note;               // if not empty, replaces all cells from text_table.keys on
};

struct text_table {
  std::vector<table_column> columns;
  std::vector<table_row> rows;
  std::size_t keys = 0; // the first columns, which identify a row
};

// Returns the columns that a UTF-8 text takes on a terminal. Counts code points: wide and combining ones are not
// handled.
std::size_t display_width(std::string_view text);
// Returns at most `width` columns; a text that is cut ends in "…".
std::string shortened(const std::string& text, std::size_t width);

// Returns the columns that the table takes, without notes.
std::size_t width_of(const text_table& table);
// Removes dispensable columns until the table fits `width` (0: any). Returns their headers.
std::vector<std::string> fit(text_table& table, std::size_t width);

// Returns the key columns, followed by the columns from `first` up to `end`.
text_table part_of(const text_table& table, std::size_t first, std::size_t end);

// Returns one line per row, each ending in a newline, without indentation. Notes wrap at `width` (0: never).
std::string draw(const text_table& table, std::size_t width);
std::string draw_markdown(const text_table& table);
// Escapes the characters that Markdown takes for HTML or for the end of a cell (& < > |).
std::string markdown_text(const std::string& text);

// Arranges items side by side, separated by three blanks, as many per line as fit `width` (0: all). Each line ends in a
// newline.
std::string flow(const std::vector<std::string>& items, std::size_t width);
// Fills words into lines of `width` (0: one line); lines after the first are indented. Each line ends in a newline. The
// first line continues at column `begin`.
std::string fill(const std::string& text, std::size_t width, std::size_t indent, std::size_t begin = 0);

} // namespace regatta
