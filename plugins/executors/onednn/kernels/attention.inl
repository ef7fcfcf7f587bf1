// SPDX-License-Identifier: Apache-2.0
//
// Implements attention.hpp.

void softmax(float* p, const float* seen, std::size_t size, float scale) {
  float most = -3e38F;
  bool any = false;
  for (std::size_t i = 0; i < size; ++i) {
    const bool live = seen[i] > 0;
    any = any || live;
    most = live && p[i] > most ? p[i] : most;
  }
  if (!any) most = 0;
  vec sum = splat(0);
  const vec shift = splat(-most * scale), factor = splat(scale), zero = splat(0);
  each_vector(size, [&](std::size_t, const auto& get, const auto& put) {
    const vec e = keep(greater(get(seen), zero), exp_of(fma(get(p), factor, shift)));
    sum = add(sum, e);
    put(p, e);
  });
  const vec inverse = splat(any ? 1 / sum_of(sum) : 0.0F);
  each_vector(size, [&](std::size_t, const auto& get, const auto& put) { put(p, mul(get(p), inverse)); });
}

void softmax_gradient(float* d, const float* p, std::size_t size, float scale) {
  vec product = splat(0);
  each_vector(size, [&](std::size_t, const auto& get, const auto&) { product = fma(get(d), get(p), product); });
  const vec less = splat(sum_of(product)), factor = splat(scale);
  each_vector(size, [&](std::size_t, const auto& get, const auto& put) {
    put(d, mul(mul(factor, get(p)), sub(get(d), less)));
  });
}

constexpr attention_kernels attention_table = {&softmax, &softmax_gradient};
