// SPDX-License-Identifier: Apache-2.0
//
// The instruction set that oneDNN detects on this CPU and may use. It includes AMX, for which oneDNN itself requests
// permission from Linux. The environment variable ONEDNN_MAX_CPU_ISA limits it; nothing here does.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace onednn {

// Returns whether oneDNN may use all instructions of `wanted`.
inline bool has(dnnl::cpu_isa wanted) {
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa()), bits = static_cast<unsigned>(wanted);
  return (isa & bits) == bits;
}

// Returns the highest level of kernels_for() whose instructions oneDNN may use.
inline int isa_level() {
  return has(dnnl::cpu_isa::avx512_core) ? 2 : has(dnnl::cpu_isa::avx2) ? 1 : 0;
}

// Returns the name of the instruction set, for reports and as a part of autotuning's keys.
inline const char* isa_name() {
  using isa = dnnl::cpu_isa;
  if (has(isa::avx512_core_amx)) return "avx512_core_amx";
  if (has(isa::avx512_core_bf16)) return "avx512_core_bf16";
  if (has(isa::avx512_core_vnni)) return "avx512_core_vnni";
  if (has(isa::avx512_core)) return "avx512_core";
  if (has(isa::avx2)) return "avx2";
  return has(isa::sse41) ? "sse41" : "portable";
}

} // namespace onednn
