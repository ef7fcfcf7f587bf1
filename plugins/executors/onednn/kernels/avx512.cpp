// SPDX-License-Identifier: Apache-2.0
#include "kernels/instruction_sets.hpp"

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
inline vec load(const bf16* p) {
  const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(all_lanes, _mm512_maskz_cvtepu16_epi32(all_lanes, half), 16));
}
// Rounds to nearest, ties to even; a NaN stays a NaN.
inline void store(bf16* p, vec v) {
  const __m512i bits = _mm512_castps_si512(v), upper = _mm512_maskz_srli_epi32(all_lanes, bits, 16);
  const __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
  __m512i half = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
  half = _mm512_maskz_srli_epi32(all_lanes, half, 16);
  const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
  half = _mm512_mask_or_epi32(half, nan, upper, _mm512_set1_epi32(0x40));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_maskz_cvtepi32_epi16(all_lanes, half));
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
// g++ 12 warns of an uninitialised register in the unmasked form of some intrinsics. The masked form with all lanes is
// the same instruction.
inline vec max(vec a, vec b) {
  return _mm512_maskz_max_ps(all_lanes, a, b);
}
inline mask_word greater(vec a, vec b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}
inline vec keep(mask_word m, vec v) {
  return _mm512_maskz_mov_ps(m, v);
}

inline vec div(vec a, vec b) {
  return _mm512_div_ps(a, b);
}
inline vec round_to_even(vec a) {
  return _mm512_maskz_roundscale_ps(all_lanes, a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline vec times_power(vec a, vec b) {
  return _mm512_maskz_scalef_ps(all_lanes, a, b);
}

using words = __m512i;
inline words load_words(const std::uint32_t* p) {
  return _mm512_loadu_si512(p);
}
inline words splat_word(std::uint32_t w) {
  return _mm512_set1_epi32(static_cast<int>(w));
}
inline words exclusive_or(words a, words b) {
  return _mm512_xor_si512(a, b);
}
inline void multiply(words a, std::uint32_t b, words& high, words& low) {
  const words factor = splat_word(b);
  const words even = _mm512_maskz_mul_epu32(0xFF, a, factor);
  const words odd = _mm512_maskz_mul_epu32(0xFF, _mm512_maskz_srli_epi64(0xFF, a, 32), factor);
  high = _mm512_mask_mov_epi32(_mm512_maskz_srli_epi64(0xFF, even, 32), 0xAAAA, odd);
  low = _mm512_mask_mov_epi32(even, 0xAAAA, _mm512_maskz_slli_epi64(0xFF, odd, 32));
}
inline mask_word lower_at_least(words a, std::uint32_t threshold) {
  return _mm512_cmpge_epu32_mask(_mm512_and_si512(a, splat_word(0xFFFF)), splat_word(threshold));
}
inline mask_word upper_at_least(words a, std::uint32_t threshold) {
  return _mm512_cmpge_epu32_mask(_mm512_maskz_srli_epi32(all_lanes, a, 16), splat_word(threshold));
}

inline __mmask16 first(std::size_t n) {
  return static_cast<__mmask16>((1U << n) - 1);
}
inline vec load_some(const float* p, std::size_t n) {
  return _mm512_maskz_loadu_ps(first(n), p);
}
inline void store_some(float* p, vec v, std::size_t n) {
  _mm512_mask_storeu_ps(p, first(n), v);
}

#include "kernels/kernels.inl"

} // namespace
const kernel_table table = table_of("avx512");
} // namespace onednn::avx512
