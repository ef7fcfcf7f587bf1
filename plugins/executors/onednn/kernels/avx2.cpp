// SPDX-License-Identifier: Apache-2.0
#include "kernels/instruction_sets.hpp"

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
inline vec load(const bf16* p) {
  const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}
// Rounds to nearest, ties to even; a NaN stays a NaN.
inline void store(bf16* p, vec v) {
  const __m256i bits = _mm256_castps_si256(v), upper = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
  __m256i half = _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF))), 16);
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  half = _mm256_blendv_epi8(half, _mm256_or_si256(upper, _mm256_set1_epi32(0x40)), nan);
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(half, half), 0x08);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
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

inline vec div(vec a, vec b) {
  return _mm256_div_ps(a, b);
}
inline vec round_to_even(vec a) {
  return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline vec times_power(vec a, vec b) { // requires b from -126 to 127
  const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(b), _mm256_set1_epi32(127));
  return _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
}

using words = __m256i;
inline words load_words(const std::uint32_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
inline words splat_word(std::uint32_t w) {
  return _mm256_set1_epi32(static_cast<int>(w));
}
inline words exclusive_or(words a, words b) {
  return _mm256_xor_si256(a, b);
}
inline void multiply(words a, std::uint32_t b, words& high, words& low) {
  const words factor = splat_word(b);
  const words even = _mm256_mul_epu32(a, factor);
  const words odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), factor);
  high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
  low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
}
inline mask_word halves_at_least(words a, std::uint32_t threshold) { // values below 2^16: signed comparison
  const __m256i less = _mm256_cmpgt_epi32(splat_word(threshold), a);
  return static_cast<mask_word>(~_mm256_movemask_ps(_mm256_castsi256_ps(less)) & all_lanes);
}
inline mask_word lower_at_least(words a, std::uint32_t threshold) {
  return halves_at_least(_mm256_and_si256(a, splat_word(0xFFFF)), threshold);
}
inline mask_word upper_at_least(words a, std::uint32_t threshold) {
  return halves_at_least(_mm256_srli_epi32(a, 16), threshold);
}

inline __m256i first(std::size_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline vec load_some(const float* p, std::size_t n) {
  return _mm256_maskload_ps(p, first(n));
}
inline void store_some(float* p, vec v, std::size_t n) {
  _mm256_maskstore_ps(p, first(n), v);
}

#include "kernels/kernels.inl"

} // namespace
const kernel_table table = table_of("avx2");
} // namespace onednn::avx2
