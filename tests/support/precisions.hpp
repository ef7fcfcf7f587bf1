// SPDX-License-Identifier: Apache-2.0
//
// The precisions that the oneDNN executor computes in on this CPU.
#pragma once

#include "cpu.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace regatta::test {

// Returns "fp32" and, where it can be computed, "bf16"; says so where it cannot.
inline std::vector<const char*> precisions() {
  if (computes_bf16()) return {"fp32", "bf16"};
  MESSAGE("bf16 is left out: this CPU has no AVX-512");
  return {"fp32"};
}

} // namespace regatta::test
