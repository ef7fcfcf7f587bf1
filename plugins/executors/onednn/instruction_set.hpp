// SPDX-License-Identifier: Apache-2.0
//
// What oneDNN finds on this CPU and is allowed to use, AMX included: it asks the kernel for the tiles itself. Nothing
// here limits it; ONEDNN_MAX_CPU_ISA does.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace onednn {

inline bool has(dnnl::cpu_isa wanted) {
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa()), bits = static_cast<unsigned>(wanted);
  return (isa & bits) == bits;
}

// The kernels that go with it; see kernels_for().
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
