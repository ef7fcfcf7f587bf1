// SPDX-License-Identifier: Apache-2.0
//
// Formats tables of text: in columns for a terminal, or as Markdown. Independent of their content. Widths are in
// columns of a terminal, texts are UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace regatta {

struct table_column {
  std::string header;
  bool right = false;  // aligned right
  int dispensable = 0; // fit() leaves out the column with the highest value first; 0: never
};

struct table_row {
  std::vector<std::string> cells; // one per column
  std::string note;               // if not empty, replaces all cells from text_table.keys on
};

struct text_table {
  std::vector<table_column> columns;
  std::vector<table_row> rows;
  std::size_t keys = 0; // number of first columns, which identify a row
};

// Returns the width of a text. Counts code points: wide and combining ones are not handled.
std::size_t display_width(std::string_view text);
// Returns the text, cut to at most `width` columns; a text that is cut ends in "…".
std::string shortened(const std::string& text, std::size_t width);

// Returns the width that draw() needs, without notes.
std::size_t width_of(const text_table& table);
// Removes dispensable columns until the table fits `width` (0: unlimited), or none is left; it may then still be wider.
// Returns the headers of the removed columns. Requires that key columns are not dispensable.
std::vector<std::string> fit(text_table& table, std::size_t width);

// Returns the key columns, followed by columns first .. end - 1. Requires keys <= first <= end.
text_table part_of(const text_table& table, std::size_t first, std::size_t end);

// Returns a line of headers and one per row, each ending in a newline, without indentation. Notes wrap at `width` (0:
// never); cells do not: call fit() before.
std::string draw(const text_table& table, std::size_t width);
std::string draw_markdown(const text_table& table);
// Escapes the characters that Markdown takes for HTML or for the end of a cell (& < > |).
std::string markdown_text(const std::string& text);

// Arranges items side by side, separated by three blanks, as many per line as fit `width` (0: all); leaves out empty
// ones, and wraps an item that is wider than `width`. Each line ends in a newline.
std::string flow(const std::vector<std::string>& items, std::size_t width);
// Fills words into lines that end at column `width` (0: one line). The first line is to be appended at column `begin`;
// later ones begin with `indent` blanks. Each line ends in a newline. Does not divide words.
std::string fill(const std::string& text, std::size_t width, std::size_t indent, std::size_t begin = 0);

} // namespace regatta
