// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "base/failure.hpp"

namespace regatta {

// [any] Returns the one of two exit codes with which the program ends: the first in the order below, in which `done`
// and numbers that are no exit_code come last; of those, the larger number.
inline int worse_exit_code(int a, int b) {
  constexpr exit_code order[] = {exit_code::interrupted, exit_code::usage, exit_code::plugin,
                                 exit_code::wrong,       exit_code::run,   exit_code::skipped};
  for (const exit_code code : order)
    if (a == static_cast<int>(code) || b == static_cast<int>(code)) return static_cast<int>(code);
  return std::max(a, b);
}

inline exit_code worse_exit_code(exit_code a, exit_code b) {
  return static_cast<exit_code>(worse_exit_code(static_cast<int>(a), static_cast<int>(b)));
}

} // namespace regatta
