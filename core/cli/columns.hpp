// SPDX-License-Identifier: Apache-2.0
//
// Tables as parts of a text, for `list` and `describe`.
#pragma once

#include "report/text_table.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace regatta {

// A header and the rows, one cell a column, two blanks before each line.
std::string indented(std::vector<table_column> columns, std::vector<std::vector<std::string>> rows);

// Columns of the terminal behind the descriptor; 0: it is none.
std::size_t terminal_width(int descriptor);

} // namespace regatta
