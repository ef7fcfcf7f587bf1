// SPDX-License-Identifier: Apache-2.0
//
// The precisions that the oneDNN executor computes in on this CPU: fp32 and, where the CPU has AVX-512, bf16, in which
// it emulates instructions that the CPU lacks.
#pragma once

#include <doctest/doctest.h>

#include <vector>

namespace regatta::test {

// The instruction sets that oneDNN counts as its level avx512_core.
inline bool computes_bf16() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

// Returns "fp32" and, where it can be computed, "bf16"; says so where it cannot.
inline std::vector<const char*> precisions() {
  if (computes_bf16()) return {"fp32", "bf16"};
  MESSAGE("bf16 is left out: this CPU has no AVX-512");
  return {"fp32"};
}

} // namespace regatta::test
