// SPDX-License-Identifier: Apache-2.0
//
// Implements loss.hpp.

softmax_sums logits(const float* x, std::size_t size) {
  vec most = splat(x[0]);
  std::size_t i = 0;
  for (; i + lanes <= size; i += lanes) most = max(most, load(x + i));
  alignas(64) float f[lanes];
  store(f, most);
  float top = x[0];
  for (std::size_t l = 0; l < lanes; ++l) top = f[l] > top ? f[l] : top;
  for (; i < size; ++i) top = x[i] > top ? x[i] : top;

  softmax_sums s{top, 0, 0};
  const vec shift = splat(top);
  // Sums are fp32 over at most 4096 elements, then double, which bounds the rounding error.
  for (std::size_t first = 0; first < size; first += 4096) {
    const std::size_t last = first + 4096 < size ? first + 4096 : size;
    vec sum = splat(0), plain = splat(0);
    for (i = first; i + lanes <= last; i += lanes) {
      const vec v = load(x + i);
      plain = add(plain, v);
      sum = add(sum, exp_of(sub(v, shift)));
    }
    s.sum += sum_of(sum);
    s.plain += sum_of(plain);
    if (i < last) {
      store(f, exp_of(sub(load_some(x + i, last - i), shift)));
      for (std::size_t l = 0; i + l < last; ++l) {
        s.sum += f[l];
        s.plain += x[i + l];
      }
    }
  }
  return s;
}

void logits_gradient(const float* x, float* g, std::size_t size, float shift, float scale, float less) {
  const vec by = splat(shift), factor = splat(scale), minus = splat(less);
  each_vector(size, [&](std::size_t, const auto& get, const auto& put) {
    put(g, mul(factor, sub(exp_of(sub(get(x), by)), minus)));
  });
}

constexpr loss_kernels loss_table = {&logits, &logits_gradient};
