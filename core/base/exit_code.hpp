// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "base/failure.hpp"

namespace regatta {

// [any] Returns the one of two exit codes with which the program ends: the first in the order below. If neither is in
// that order (done, interrupted), returns the larger number.
inline int worse_exit_code(int a, int b) {
  constexpr exit_code order[] = {exit_code::usage, exit_code::plugin, exit_code::wrong,
                                 exit_code::run,   exit_code::gate,   exit_code::skipped};
  for (const exit_code code : order)
    if (a == static_cast<int>(code) || b == static_cast<int>(code)) return static_cast<int>(code);
  return std::max(a, b);
}

} // namespace regatta
