// SPDX-License-Identifier: Apache-2.0
#include "kernels_variant.hpp"

#include <immintrin.h>

namespace onednn::avx512 {
namespace {

using vec = __m512;
constexpr std::size_t lanes = 16;
constexpr mask_word all_lanes = 0xFFFF;
inline vec load(const float* p) {
  return _mm512_loadu_ps(p);
}
inline void store(float* p, vec v) {
  _mm512_storeu_ps(p, v);
}
inline vec splat(float f) {
  return _mm512_set1_ps(f);
}
inline vec add(vec a, vec b) {
  return _mm512_add_ps(a, b);
}
inline vec sub(vec a, vec b) {
  return _mm512_sub_ps(a, b);
}
inline vec mul(vec a, vec b) {
  return _mm512_mul_ps(a, b);
}
inline vec fma(vec a, vec b, vec c) {
  return _mm512_fmadd_ps(a, b, c);
}
// g++ 12 warns of the undefined register in _mm512_max_ps; the masked form is the same instruction.
inline vec max(vec a, vec b) {
  return _mm512_maskz_max_ps(all_lanes, a, b);
}
inline mask_word greater(vec a, vec b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}
inline vec keep(mask_word m, vec v) {
  return _mm512_maskz_mov_ps(m, v);
}

#include "kernels.inl"

} // namespace
const kernel_table table = table_of("avx512", all_flags{});
} // namespace onednn::avx512
