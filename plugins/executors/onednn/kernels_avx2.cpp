// SPDX-License-Identifier: Apache-2.0
#include "kernels_variant.hpp"

#include <immintrin.h>

namespace onednn::avx2 {
namespace {

using vec = __m256;
constexpr std::size_t lanes = 8;
constexpr mask_word all_lanes = 0xFF;
inline vec load(const float* p) {
  return _mm256_loadu_ps(p);
}
inline void store(float* p, vec v) {
  _mm256_storeu_ps(p, v);
}
inline vec splat(float f) {
  return _mm256_set1_ps(f);
}
inline vec add(vec a, vec b) {
  return _mm256_add_ps(a, b);
}
inline vec sub(vec a, vec b) {
  return _mm256_sub_ps(a, b);
}
inline vec mul(vec a, vec b) {
  return _mm256_mul_ps(a, b);
}
inline vec fma(vec a, vec b, vec c) {
  return _mm256_fmadd_ps(a, b, c);
}
inline vec max(vec a, vec b) {
  return _mm256_max_ps(a, b);
}
inline mask_word greater(vec a, vec b) {
  return static_cast<mask_word>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ)));
}
inline vec keep(mask_word m, vec v) {
  const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  const __m256i set = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(m), bit), bit);
  return _mm256_and_ps(v, _mm256_castsi256_ps(set));
}

#include "kernels.inl"

} // namespace
const kernel_table table = table_of("avx2", all_flags{});
} // namespace onednn::avx2
