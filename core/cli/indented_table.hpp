// SPDX-License-Identifier: Apache-2.0
//
// Draws tables within a text, for `list` and `describe`.
#pragma once

#include "report/text_table.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace regatta {

// Returns a table as text: a header and the rows, each line with two blanks before it and a newline behind it. Every
// row has one cell for each column.
std::string indented(std::vector<table_column> columns, std::vector<std::vector<std::string>> rows);

// Returns the number of columns of the terminal behind the descriptor; 0 if it is not a terminal.
std::size_t terminal_width(int descriptor);

} // namespace regatta
