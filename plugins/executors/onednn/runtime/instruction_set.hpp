// SPDX-License-Identifier: Apache-2.0
//
// The instruction set that oneDNN detects on this CPU and may use. It includes AMX, for which oneDNN itself requests
// permission from Linux. Two environment variables limit it: REGATTA_ISA, which the engine sets for train.isa, and
// without that ONEDNN_MAX_CPU_ISA.
#pragma once

#include <array>

#include <oneapi/dnnl/dnnl.hpp>
#include <regatta/plugin.hpp>
#include <regatta/simd.hpp>

namespace onednn {

// Makes oneDNN obey REGATTA_ISA; call it before all else of oneDNN. Throws RG_E_UNSUPPORTED if this oneDNN was built
// without that function, or was used before. [any]
inline void obey_cap() {
#if defined(__x86_64__)
  using rg::simd::isa;
  static const dnnl_status_t status = [] {
    constexpr std::array levels{dnnl_cpu_isa_sse41, dnnl_cpu_isa_avx2, dnnl_cpu_isa_avx512_core,
                                dnnl_cpu_isa_avx512_core_bf16};
    const isa cap = rg::simd::allowed();
    return cap == isa::avx512_core_amx ? dnnl_success : dnnl_set_max_cpu_isa(levels[static_cast<std::size_t>(cap)]);
  }();
  if (status != dnnl_success)
    throw rg::error(RG_E_UNSUPPORTED,
                    "this oneDNN cannot limit its instruction set: set train.isa = \"auto\", and unset "
                    "REGATTA_ISA");
#endif
}

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
