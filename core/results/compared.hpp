// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace regatta {

// A figure of a case of which comparisons and claims take the values of single repeats.
struct figure_kind {
  const char* path;
  bool more_is_better;
  const char *better, *worse; // "faster", "slower"
};

// [any] Returns these figures, in the order of a comparison's table.
const std::vector<figure_kind>& compared_figures();
// [any] Returns their paths, in the same order.
std::vector<std::string> compared_paths();

// [any] Returns the parts of the fingerprint in which two cases must not differ, unless `across` names them: cases that
// differ in one of them do other work. Strategies and transports are what one compares.
const std::vector<std::string>& comparable_parts();

} // namespace regatta
