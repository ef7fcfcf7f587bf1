// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace regatta::test {

// Returns whether the oneDNN executor computes in bf16 on this CPU. It does where the CPU has the instruction sets that
// oneDNN counts as its level avx512_core, and emulates there what else it needs.
inline bool computes_bf16() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

} // namespace regatta::test
