// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compare/comparison.hpp"
#include "compare/gate.hpp"
#include "report/render.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace regatta {

// [any] Returns a comparison as a document that ends in a newline: tables with the texts of `gates` below them
// (console, markdown), JSON of schema regatta.comparison/1 with "gates", or CSV with one row for each figure of each
// case, without gates. There is no LaTeX: format::latex gives JSON. `width`: columns of the terminal, for
// format::console; 0: unlimited.
std::string render_comparison(const comparison& c, const std::vector<gate_result>& gates, format f, std::size_t width);

} // namespace regatta
