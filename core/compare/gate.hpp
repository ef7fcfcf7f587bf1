// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compare/comparison.hpp"

#include <string>
#include <vector>

namespace regatta {

// A bound on the change of a figure from A to B: -0.03 of "samples_per_second" fails if B is more than 3 % lower.
struct gate {
  std::string path;
  double change = 0;
};

// Reads "samples_per_second -3%". Throws failure (usage) if it is no figure of compared_figures() with a change in the
// direction in which the figure gets worse.
gate parse_gate(const std::string& text);

struct gate_result {
  std::string text; // one line
  bool failed = false;
};

// Returns a result for every compared case that has the figure. A gate fails in a case only if the interval of the
// ratio B / A lies beyond the bound as a whole. If the interval contains the bound, or covers less than 95 % because of
// few repeats, the text says that it is undecided, and `failed` is false. If no case has the figure, the gate checks
// nothing and fails: the only result says so.
std::vector<gate_result> check_gate(const gate& g, const comparison& c);

} // namespace regatta
