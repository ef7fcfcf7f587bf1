// SPDX-License-Identifier: Apache-2.0
//
// A figure over many results of the same cases: of commits, or of dates.
#pragma once

#include "compare/comparison.hpp"
#include "report/render.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace regatta {

// [any] Returns the figures that a result has on its own: those of compared_figures() without "seconds_to_loss", whose
// loss is one that two results reach.
std::vector<std::string> history_figures();

// [any] Returns, for each case that the results have, the figure `path` of each result in the order of their dates,
// with its interval and a bar from 0 to the largest value; as tables, or as JSON of schema regatta.history/1 or CSV
// with one row for each case of each result. Requires that `path` is one of history_figures(), and a format other than
// latex. `width`: columns of the terminal, for format::console; 0: unlimited.
std::string render_history(std::vector<compared_result> results, const std::string& path, format f, std::size_t width);

} // namespace regatta
