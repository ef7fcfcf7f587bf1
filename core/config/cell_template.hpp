// SPDX-License-Identifier: Apache-2.0
//
// The key `value` of a [report] table: which figures a cell shows, and how.
//
//   value = "samples_per_second"                              one figure
//   value = ["time.forward", "time.backward"]                 several, separated by "/"
//   value = "{samples_per_second} ({efficiency:%})"           several in a text; {{ and }} are braces
//
// A figure may be followed by a colon and a format: ".2" is two decimals, "%" a percentage, ".0%" one without
// decimals, "x" the ratio to the reference of `ratio_to`, ".1x" one with one decimal.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

struct cell_figure {
  enum class style { number, percentage, ratio };
  std::string path; // a figure (report_values.hpp) or a key
  style is = style::number;
  int decimals = -1; // -1: not given
};

struct cell_template {
  std::vector<cell_figure> figures; // at least one
  std::vector<std::string> texts;   // before, between and after them: one more than there are figures
};

// A value that is no template; what() says what was expected.
struct cell_error : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// [any] Returns the template of a string or an array of strings. With `ratio`, figures outside a text that have no
// format become ratios. Throws cell_error if `value` is neither, if it has no figure, if its braces do not match, if a
// format is unknown, or if it has ratios without `ratio`, or no ratio with it. Does not check the figures' names.
cell_template cell_template_of(const nlohmann::json& value, bool ratio);

} // namespace regatta
