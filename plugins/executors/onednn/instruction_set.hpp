// SPDX-License-Identifier: Apache-2.0
//
// The instruction set that oneDNN detects on this CPU and may use, including AMX: oneDNN itself asks Linux for the
// tiles. ONEDNN_MAX_CPU_ISA limits it; nothing here does.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace onednn {

inline bool has(dnnl::cpu_isa wanted) {
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa()), bits = static_cast<unsigned>(wanted);
  return (isa & bits) == bits;
}

// The level of kernels_for() whose kernels fit the instruction set that oneDNN uses.
inline int isa_level() {
  return has(dnnl::cpu_isa::avx512_core) ? 2 : has(dnnl::cpu_isa::avx2) ? 1 : 0;
}

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
