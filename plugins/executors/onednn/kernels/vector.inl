// SPDX-License-Identifier: Apache-2.0
//
// Functions of vectors on which the kernels are built.

inline vec min(vec a, vec b) {
  return sub(splat(0), max(sub(splat(0), a), sub(splat(0), b)));
}
inline float sum_of(vec v) {
  alignas(64) float f[lanes];
  store(f, v);
  float sum = 0;
  for (std::size_t l = 0; l < lanes; ++l) sum += f[l];
  return sum;
}

inline vec load_some(const bf16* p, std::size_t n) {
  bf16 some[lanes] = {};
  for (std::size_t l = 0; l < n; ++l) some[l] = p[l];
  return load(some);
}
inline void store_some(bf16* p, vec v, std::size_t n) {
  bf16 all[lanes];
  store(all, v);
  for (std::size_t l = 0; l < n; ++l) p[l] = all[l];
}

// Calls f(offset, get, put) for every vector of a row; get(p) loads from p + offset, put(p, v) stores there. Lanes past
// the end load as 0 and are not stored.
template <class F> inline void each_vector(std::size_t size, const F& f) {
  std::size_t i = 0;
  for (; i + lanes <= size; i += lanes)
    f(
        i, [i](const auto* p) { return load(p + i); }, [i](auto* p, vec v) { store(p + i, v); });
  if (i < size) {
    const std::size_t n = size - i;
    f(
        i, [i, n](const auto* p) { return load_some(p + i, n); },
        [i, n](auto* p, vec v) { store_some(p + i, v, n); });
  }
}

// exp by Cody and Waite's argument reduction and Cephes' polynomial (expf.c): error up to 2 units in the last place.
inline vec exp_of(vec x) {
  x = max(min(x, splat(88)), splat(-87));
  const vec n = round_to_even(mul(x, splat(1.44269504F)));
  vec r = fma(n, splat(-0.693359375F), x);
  r = fma(n, splat(2.12194440e-4F), r);
  vec p = splat(1.9875691500e-4F);
  p = fma(p, r, splat(1.3981999507e-3F));
  p = fma(p, r, splat(8.3334519073e-3F));
  p = fma(p, r, splat(4.1665795894e-2F));
  p = fma(p, r, splat(1.6666665459e-1F));
  p = fma(p, r, splat(5.0000001201e-1F));
  p = fma(p, mul(r, r), add(r, splat(1)));
  return times_power(p, n);
}

inline mask_word bits_at(const std::uint8_t* mask, std::size_t e) {
  std::uint32_t word;
  __builtin_memcpy(&word, mask + e / 8, sizeof word);
  return static_cast<mask_word>(word >> (e % 8)) & all_lanes;
}

inline void spill(const vec& v, double* out) {
  alignas(64) float f[lanes];
  store(f, v);
  for (std::size_t l = 0; l < lanes; ++l) out[l] += f[l];
}

// Elements of a row that fill whole vectors.
inline std::size_t whole_vectors(std::size_t dim) {
  return dim / lanes * lanes;
}
