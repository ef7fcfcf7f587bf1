// SPDX-License-Identifier: Apache-2.0
//
// Implements sequence_kernels.hpp over the vector type of kernels.inl, and: load_some, store_some (they access the
// first n elements, n < lanes; the rest loads as 0), div, round_to_even, times_power (a * 2^b for whole b). As in
// kernels.inl, functions of other headers must not be called.

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

// Phi(x) and e = exp(-x^2 / 2), by Abramowitz and Stegun 7.1.26: absolute error 1e-7.
inline vec normal_cdf(vec x, vec& e) {
  const vec zero = splat(0), one = splat(1);
  e = exp_of(mul(mul(x, x), splat(-0.5F)));
  const vec z = mul(max(x, sub(zero, x)), splat(0.70710678F));
  const vec t = div(one, fma(z, splat(0.3275911F), one));
  vec p = splat(1.061405429F);
  p = fma(p, t, splat(-1.453152027F));
  p = fma(p, t, splat(1.421413741F));
  p = fma(p, t, splat(-0.284496736F));
  p = fma(p, t, splat(0.254829592F));
  const vec tail = mul(mul(mul(p, t), e), splat(0.5F)); // Phi(-|x|)
  return add(keep(greater(x, zero), sub(one, add(tail, tail))), tail);
}

template <row_function F> inline vec function_of(vec x) {
  if constexpr (F == row_function::relu) return max(splat(0), x); // with operands in this order a NaN stays a NaN
  if constexpr (F == row_function::gelu) {
    vec e;
    return mul(x, normal_cdf(x, e));
  }
  if constexpr (F == row_function::tanh) // 1 - 2 / (exp(2x) + 1)
    return sub(splat(1), div(splat(2), add(exp_of(add(x, x)), splat(1))));
  return x;
}
template <row_function F> inline vec slope_of(vec x, vec y) {
  if constexpr (F == row_function::relu) return keep(greater(y, splat(0)), splat(1));
  if constexpr (F == row_function::gelu) {
    vec e;
    const vec phi = normal_cdf(x, e);
    return fma(x, mul(e, splat(0.39894228F)), phi);
  }
  if constexpr (F == row_function::tanh) return sub(splat(1), mul(y, y));
  return splat(1);
}

template <row_function F, class T> void map(const map_pass<T>& p) {
  each_vector(p.count, [&](std::size_t, const auto& get, const auto& put) { put(p.y, function_of<F>(get(p.x))); });
}

template <row_function F, class T> void map_gradient(const map_gradient_pass<T>& p) {
  for (std::size_t r = 0; r < p.rows; ++r) {
    const std::size_t at = r * p.stride;
    each_vector(p.columns, [&](std::size_t, const auto& get, const auto& put) {
      vec g = get(p.dy + at);
      if constexpr (F == row_function::gelu) g = mul(g, slope_of<F>(get(p.x + at), g));
      if constexpr (F == row_function::relu || F == row_function::tanh) g = mul(g, slope_of<F>(g, get(p.y + at)));
      if (F != row_function::none || p.dx != p.dy) put(p.dx + at, g);
      if (p.sums) put(p.sums, add(get(p.sums), g));
    });
  }
}

inline mask_word bits_at(const std::uint8_t* mask, std::size_t e) {
  std::uint32_t word;
  __builtin_memcpy(&word, mask + e / 8, sizeof word);
  return static_cast<mask_word>(word >> (e % 8)) & all_lanes;
}

void stage(const stage_pass& p) {
  const vec scale = splat(p.keep_scale);
  for (std::size_t r = 0; r < p.rows; ++r) {
    const std::size_t at = r * p.size;
    float* z = p.scale ? p.normal : p.y;
    vec sum = splat(0);
    each_vector(p.size, [&](std::size_t i, const auto& get, const auto& put) {
      vec v = get(p.x + at);
      if (p.mask) v = keep(bits_at(p.mask, p.first_bit + at + i), mul(v, scale));
      if (p.residual) v = add(v, get(p.residual + at));
      sum = add(sum, v);
      put(z + at, v);
    });
    if (!p.scale) continue;
    const float mean = sum_of(sum) / static_cast<float>(p.size);
    vec square = splat(0);
    std::size_t i = 0;
    for (; i + lanes <= p.size; i += lanes) {
      const vec d = sub(load(z + at + i), splat(mean));
      square = fma(d, d, square);
    }
    float variance = sum_of(square);
    for (; i < p.size; ++i) variance += (z[at + i] - mean) * (z[at + i] - mean);
    const float inverse = 1 / __builtin_sqrtf(variance / static_cast<float>(p.size) + p.epsilon);
    p.inverse[r] = inverse;
    each_vector(p.size, [&](std::size_t, const auto& get, const auto& put) {
      const vec n = mul(sub(get(z + at), splat(mean)), splat(inverse));
      put(z + at, n);
      put(p.y + at, fma(n, get(p.scale), get(p.bias)));
    });
  }
}

void stage_gradient(const stage_gradient_pass& p) {
  const vec keep_scale = splat(p.keep_scale);
  for (std::size_t r = 0; r < p.rows; ++r) {
    const std::size_t at = r * p.size;
    float mean = 0, slope = 0, inverse = 1;
    if (p.scale) {
      vec sum = splat(0), product = splat(0);
      each_vector(p.size, [&](std::size_t, const auto& get, const auto& put) {
        const vec dy = get(p.dy + at), n = get(p.normal + at), g = mul(dy, get(p.scale));
        sum = add(sum, g);
        product = fma(g, n, product);
        put(p.dscale, fma(dy, n, get(p.dscale)));
        put(p.dbias, add(dy, get(p.dbias)));
      });
      mean = sum_of(sum) / static_cast<float>(p.size);
      slope = sum_of(product) / static_cast<float>(p.size);
      inverse = p.inverse[r];
    }
    each_vector(p.size, [&](std::size_t i, const auto& get, const auto& put) {
      vec dz = get(p.dy + at);
      if (p.scale)
        dz = mul(sub(sub(mul(dz, get(p.scale)), splat(mean)), mul(get(p.normal + at), splat(slope))), splat(inverse));
      if (p.dresidual) put(p.dresidual + at, dz);
      if (!p.dx) return;
      if (p.mask) dz = keep(bits_at(p.mask, p.first_bit + at + i), mul(dz, keep_scale));
      put(p.dx + at, dz);
    });
  }
}

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

void logits_gradient(const float* x, float* g, std::size_t size, float shift, float share, float less) {
  const vec by = splat(shift), factor = splat(share), minus = splat(less);
  each_vector(size, [&](std::size_t, const auto& get, const auto& put) {
    put(g, mul(factor, sub(exp_of(sub(get(x), by)), minus)));
  });
}

void drop(const std::uint8_t* mask, std::size_t first_bit, const float* x, float* y, std::size_t size, float scale) {
  const vec factor = splat(scale);
  each_vector(size, [&](std::size_t i, const auto& get, const auto& put) {
    put(y, keep(bits_at(mask, first_bit + i), mul(get(x), factor)));
  });
}

// Transposes an 8 x 8 matrix of bits (Warren, Hacker's Delight, section 7-3).
inline std::uint64_t transpose8(std::uint64_t x) {
  std::uint64_t t = (x ^ (x >> 7)) & 0x00AA00AA00AA00AA;
  x ^= t ^ (t << 7);
  t = (x ^ (x >> 14)) & 0x0000CCCC0000CCCC;
  x ^= t ^ (t << 14);
  t = (x ^ (x >> 28)) & 0x00000000F0F0F0F0;
  return x ^ t ^ (t << 28);
}

void draw(std::uint8_t* mask, std::size_t first, std::size_t count, std::uint64_t seed, std::uint64_t sample,
          std::uint32_t threshold) {
  const auto key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
  for (std::size_t g = 0; g < count; g += lanes) { // a lane draws the bits of one byte
    alignas(64) std::uint32_t groups[lanes];
    for (std::size_t l = 0; l < lanes; ++l) groups[l] = static_cast<std::uint32_t>(first + g + l);
    counters c = {{splat_word(static_cast<std::uint32_t>(sample)), splat_word(static_cast<std::uint32_t>(sample >> 32)),
                   load_words(groups), splat_word(0)}};
    philox(c, key0, key1);
    std::uint64_t bits[lanes / 8] = {};
    for (std::size_t k = 0; k < 4; ++k) {
      const std::uint32_t even = lower_at_least(c.word[k], threshold), odd = upper_at_least(c.word[k], threshold);
      for (std::size_t h = 0; h < lanes / 8; ++h)
        bits[h] |=
            (static_cast<std::uint64_t>(even >> 8 * h & 0xFF) | static_cast<std::uint64_t>(odd >> 8 * h & 0xFF) << 8)
            << 16 * k;
    }
    for (std::size_t h = 0; h < lanes / 8; ++h) {
      const std::uint64_t bytes = transpose8(bits[h]);
      for (std::size_t l = 0; l < 8 && g + 8 * h + l < count; ++l)
        mask[g + 8 * h + l] = static_cast<std::uint8_t>(bytes >> 8 * l);
    }
  }
}

void axpy(float* y, float a, const float* x, std::size_t size) {
  const vec factor = splat(a);
  each_vector(size, [&](std::size_t, const auto& get, const auto& put) { put(y, fma(factor, get(x), get(y))); });
}

template <class T>
constexpr map_kernels<T> maps_of = {{&map<row_function::none, T>, &map<row_function::relu, T>,
                                     &map<row_function::gelu, T>, &map<row_function::tanh, T>},
                                    {&map_gradient<row_function::none, T>, &map_gradient<row_function::relu, T>,
                                     &map_gradient<row_function::gelu, T>, &map_gradient<row_function::tanh, T>}};

constexpr sequence_kernels sequence_table = {
    maps_of<float>,
    maps_of<bf16>,
    &stage,
    &stage_gradient,
    &softmax,
    &softmax_gradient,
    &logits,
    &logits_gradient,
    &drop,
    &draw,
    &axpy,
};
