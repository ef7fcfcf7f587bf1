// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/text_table.hpp"

namespace regatta {

// [any] Returns text for LaTeX: its special characters are escaped, and the symbols of Regatta's tables are commands,
// so that any engine and encoding prints them.
std::string latex_text(const std::string& text);

// [any] Returns a table environment: a booktabs tabular with the caption above it (empty: none) and the notes below it,
// each a paragraph. A cell "-" becomes a dash. A rule stands before row `own_rows`, if there is one. Requires columns.
std::string draw_latex(const text_table& table, const std::string& caption, std::size_t own_rows,
                       const std::vector<std::string>& notes);

} // namespace regatta
