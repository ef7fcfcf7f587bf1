// SPDX-License-Identifier: Apache-2.0
//
// Implements normalization.hpp.

template <class T, unsigned Flags> void forward(const batch_norm_pass<T>& p) {
  constexpr bool norm = Flags & with_norm, relu = Flags & with_relu, masked = Flags & with_dropout,
                 record = Flags & record_mask, residual = Flags & with_residual;
  const vec a = norm ? load(p.a) : splat(1), b = norm ? load(p.b) : splat(0), scale = splat(p.scale), zero = splat(0);
  auto value = [&](const T* x) { return norm ? fma(load(x), a, b) : load(x); };

  for (std::size_t s = 0; s < p.samples; ++s) {
    const T* x = p.x + s * p.x_stride;
    const T* r = residual ? p.r + s * p.x_stride : nullptr;
    T* y = p.y + s * p.y_stride;
    mask_word* mask = masked || record ? p.mask + s * p.mask_stride : nullptr;
    if constexpr (Flags & with_pool) {
      const std::size_t row = p.width * lanes;
      for (std::size_t h = 0; h < p.height; h += 2, x += 2 * row) {
        for (std::size_t w = 0; w < p.width; w += 2, y += lanes) {
          const T* corner = x + w * lanes;
          const vec v0 = value(corner), v1 = value(corner + lanes), v2 = value(corner + row),
                    v3 = value(corner + row + lanes);
          const vec top = max(v0, v1), bottom = max(v2, v3), best = max(top, bottom);
          store(y, relu ? max(zero, best) : best); // with operands in this order a NaN stays a NaN
          if constexpr (record) {                  // the first of equal elements wins
            const mask_word live = relu ? greater(best, zero) : all_lanes;
            const mask_word low = greater(bottom, top), right0 = greater(v1, v0), right1 = greater(v3, v2);
            mask[w] = live & ~low & ~right0;
            mask[w + 1] = live & ~low & right0;
            mask[w + p.width] = live & low & ~right1;
            mask[w + p.width + 1] = live & low & right1;
          }
        }
        if constexpr (record) mask += 2 * p.width;
      }
    } else {
      const std::size_t spatial = p.height * p.width;
      for (std::size_t i = 0; i < spatial; ++i) {
        vec v = value(x + i * lanes);
        if constexpr (residual) v = add(v, load(r + i * lanes));
        mask_word m = masked ? mask[i] : all_lanes;
        if constexpr (relu) {
          if constexpr (record) m &= greater(v, zero);
          v = max(zero, v); // a NaN stays a NaN
        }
        if constexpr (masked) v = keep(m, mul(v, scale));
        store(y + i * lanes, v);
        if constexpr (record) mask[i] = m;
      }
    }
  }
}

// Elements of a lane that are summed in fp32 before the sum is added to a double. A variance summed in fp32 over an
// image of 224 x 224 is wrong by 5e-6; up to 32 x 32 elements no error is visible.
constexpr std::size_t floats_in_a_row = 1024;

template <class T> void moments(const batch_norm_pass<T>& p, double* sums, double* squares) {
  const vec shift = load(p.a);
  const std::size_t spatial = p.height * p.width;
  for (std::size_t s = 0; s < p.samples; ++s) {
    const T* x = p.x + s * p.x_stride;
    for (std::size_t i = 0; i < spatial;) {
      const std::size_t end = i + floats_in_a_row < spatial ? i + floats_in_a_row : spatial;
      vec sum0 = splat(0), sum1 = splat(0), square0 = splat(0), square1 = splat(0);
      for (; i + 2 <= end; i += 2) {
        const vec v0 = sub(load(x + i * lanes), shift), v1 = sub(load(x + (i + 1) * lanes), shift);
        sum0 = add(sum0, v0);
        sum1 = add(sum1, v1);
        square0 = fma(v0, v0, square0);
        square1 = fma(v1, v1, square1);
      }
      for (; i < end; ++i) {
        const vec v = sub(load(x + i * lanes), shift);
        sum0 = add(sum0, v);
        square0 = fma(v, v, square0);
      }
      spill(add(sum0, sum1), sums);
      spill(add(square0, square1), squares);
    }
  }
}

// Calls f(offset in x, masked gradient) for every element of a sample. Calls pause() after the last element, and
// whenever about floats_in_a_row have passed.
template <bool Pool, class T, class F, class Pause>
inline void each_gradient(const batch_norm_pass<T>& p, std::size_t s, const F& f, const Pause& pause) {
  const T* dy = p.dy + s * p.y_stride;
  const mask_word* mask = p.mask ? p.mask + s * p.mask_stride : nullptr;
  if constexpr (Pool) {
    std::size_t passed = 0;
    for (std::size_t h = 0; h < p.height; h += 2) {
      for (std::size_t w = 0; w < p.width; w += 2, dy += lanes) {
        const vec g = load(dy);
        const std::size_t i = h * p.width + w, j = i + p.width;
        f(i * lanes, keep(mask[i], g));
        f((i + 1) * lanes, keep(mask[i + 1], g));
        f(j * lanes, keep(mask[j], g));
        f((j + 1) * lanes, keep(mask[j + 1], g));
      }
      passed += 2 * p.width;
      if (passed < floats_in_a_row && h + 2 < p.height) continue;
      pause();
      passed = 0;
    }
  } else {
    const std::size_t spatial = p.height * p.width;
    for (std::size_t i = 0; i < spatial; pause()) {
      const std::size_t end = i + floats_in_a_row < spatial ? i + floats_in_a_row : spatial;
      if (mask)
        for (; i < end; ++i) f(i * lanes, keep(mask[i], load(dy + i * lanes)));
      else
        for (; i < end; ++i) f(i * lanes, load(dy + i * lanes));
    }
  }
}

template <class T, bool Pool, bool Residual> void reduce(const batch_norm_pass<T>& p, double* sums, double* products) {
  const vec mean = load(p.a);
  for (std::size_t s = 0; s < p.samples; ++s) {
    const T* x = p.x + s * p.x_stride;
    T* dr = Residual ? p.dr + s * p.x_stride : nullptr;
    vec sum = splat(0), product = splat(0);
    each_gradient<Pool>(
        p, s,
        [&](std::size_t at, vec g) {
          if constexpr (Residual) store(dr + at, g);
          sum = add(sum, g);
          product = fma(g, sub(load(x + at), mean), product);
        },
        [&] {
          spill(sum, sums);
          spill(product, products);
          sum = product = splat(0);
        });
  }
}

template <class T, unsigned Flags> void backward(const batch_norm_pass<T>& p) {
  constexpr bool norm = Flags & with_norm;
  const vec a = norm ? load(p.a) : splat(p.scale), b = norm ? load(p.b) : splat(0), c = norm ? load(p.c) : splat(0);
  for (std::size_t s = 0; s < p.samples; ++s) {
    const T* x = p.x + s * p.x_stride;
    T* dx = p.dx + s * p.x_stride;
    each_gradient<(Flags & with_pool) != 0>(
        p, s, [&](std::size_t at, vec g) { store(dx + at, norm ? fma(a, g, fma(b, load(x + at), c)) : mul(a, g)); },
        [] {});
  }
}

void layer_norm(const layer_norm_pass& p) {
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

void layer_norm_gradient(const layer_norm_gradient_pass& p) {
  const vec keep_scale = splat(p.keep_scale);
  for (std::size_t r = 0; r < p.rows; ++r) {
    const std::size_t at = r * p.size;
    float mean = 0, projection = 0, inverse = 1;
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
      projection = sum_of(product) / static_cast<float>(p.size);
      inverse = p.inverse[r];
    }
    each_vector(p.size, [&](std::size_t i, const auto& get, const auto& put) {
      vec dz = get(p.dy + at);
      if (p.scale)
        dz = mul(sub(sub(mul(dz, get(p.scale)), splat(mean)), mul(get(p.normal + at), splat(projection))),
                 splat(inverse));
      if (p.dresidual) put(p.dresidual + at, dz);
      if (!p.dx) return;
      if (p.mask) dz = keep(bits_at(p.mask, p.first_bit + at + i), mul(dz, keep_scale));
      put(p.dx + at, dz);
    });
  }
}


template <class T, unsigned... Flags> constexpr batch_norm_kernels<T> batch_norm_of(flags<Flags...>) {
  return {&moments<T>,
          {&forward<T, Flags>...},
          {&reduce<T, false, false>, &reduce<T, true, false>},
          &reduce<T, false, true>,
          {&backward<T, Flags>...}};
}

constexpr normalization_kernels normalization_table = {batch_norm_of<float>(all_flags{}),
                                                       batch_norm_of<bf16>(all_flags{}), &layer_norm,
                                                       &layer_norm_gradient};
