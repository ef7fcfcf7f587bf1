// SPDX-License-Identifier: Apache-2.0
#include "kernels/instruction_sets.hpp"

namespace onednn::portable {
namespace {

constexpr std::size_t lanes = 8;
constexpr mask_word all_lanes = 0xFF;
struct vec {
  float f[lanes];
};
template <class F> inline vec each(F f) {
  vec r;
  for (std::size_t l = 0; l < lanes; ++l) r.f[l] = f(l);
  return r;
}
inline vec load(const float* p) {
  return each([&](std::size_t l) { return p[l]; });
}
inline void store(float* p, vec v) {
  for (std::size_t l = 0; l < lanes; ++l) p[l] = v.f[l];
}
inline vec load(const bf16* p) {
  return each([&](std::size_t l) { return static_cast<float>(p[l]); });
}
inline void store(bf16* p, const vec& v) {
  for (std::size_t l = 0; l < lanes; ++l) p[l] = bf16(v.f[l]);
}
inline vec splat(float f) {
  return each([&](std::size_t) { return f; });
}
inline vec add(vec a, vec b) {
  return each([&](std::size_t l) { return a.f[l] + b.f[l]; });
}
inline vec sub(vec a, vec b) {
  return each([&](std::size_t l) { return a.f[l] - b.f[l]; });
}
inline vec mul(vec a, vec b) {
  return each([&](std::size_t l) { return a.f[l] * b.f[l]; });
}
inline vec fma(vec a, vec b, vec c) {
  return each([&](std::size_t l) { return a.f[l] * b.f[l] + c.f[l]; });
}
inline vec max(vec a, vec b) {
  return each([&](std::size_t l) { return a.f[l] > b.f[l] ? a.f[l] : b.f[l]; });
}
inline mask_word greater(vec a, vec b) {
  mask_word m = 0;
  for (std::size_t l = 0; l < lanes; ++l) m |= static_cast<mask_word>((a.f[l] > b.f[l]) << l);
  return m;
}
inline vec keep(mask_word m, vec v) {
  return each([&](std::size_t l) { return m >> l & 1 ? v.f[l] : 0.0F; });
}

inline vec div(vec a, vec b) {
  return each([&](std::size_t l) { return a.f[l] / b.f[l]; });
}
inline vec round_to_even(vec a) {
  return each([&](std::size_t l) { return __builtin_rintf(a.f[l]); });
}
inline vec times_power(vec a, vec b) { // requires b from -126 to 127
  return each([&](std::size_t l) {
    const std::uint32_t bits = static_cast<std::uint32_t>(static_cast<int>(b.f[l]) + 127) << 23;
    float power;
    __builtin_memcpy(&power, &bits, sizeof power);
    return a.f[l] * power;
  });
}

struct words {
  std::uint32_t w[lanes];
};
template <class F> inline words each_word(F f) {
  words r;
  for (std::size_t l = 0; l < lanes; ++l) r.w[l] = f(l);
  return r;
}
inline words load_words(const std::uint32_t* p) {
  return each_word([&](std::size_t l) { return p[l]; });
}
inline words splat_word(std::uint32_t w) {
  return each_word([&](std::size_t) { return w; });
}
inline words exclusive_or(const words& a, const words& b) {
  return each_word([&](std::size_t l) { return a.w[l] ^ b.w[l]; });
}
inline void multiply(const words& a, std::uint32_t b, words& high, words& low) {
  for (std::size_t l = 0; l < lanes; ++l) {
    const std::uint64_t product = std::uint64_t{b} * a.w[l];
    high.w[l] = static_cast<std::uint32_t>(product >> 32);
    low.w[l] = static_cast<std::uint32_t>(product);
  }
}
inline mask_word lower_at_least(const words& a, std::uint32_t threshold) {
  mask_word m = 0;
  for (std::size_t l = 0; l < lanes; ++l) m |= static_cast<mask_word>(((a.w[l] & 0xFFFF) >= threshold) << l);
  return m;
}
inline mask_word upper_at_least(const words& a, std::uint32_t threshold) {
  mask_word m = 0;
  for (std::size_t l = 0; l < lanes; ++l) m |= static_cast<mask_word>((a.w[l] >> 16 >= threshold) << l);
  return m;
}

inline vec load_some(const float* p, std::size_t n) {
  return each([&](std::size_t l) { return l < n ? p[l] : 0.0F; });
}
inline void store_some(float* p, const vec& v, std::size_t n) {
  for (std::size_t l = 0; l < n; ++l) p[l] = v.f[l];
}

#include "kernels/kernels.inl"

} // namespace
const kernel_table table = table_of("portable");
} // namespace onednn::portable
