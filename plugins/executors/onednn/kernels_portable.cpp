// SPDX-License-Identifier: Apache-2.0
#include "kernels_variant.hpp"

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

#include "kernels.inl"

} // namespace
const kernel_table table = table_of("portable", all_flags{});
} // namespace onednn::portable
