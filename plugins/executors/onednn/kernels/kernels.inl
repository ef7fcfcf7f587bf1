// SPDX-License-Identifier: Apache-2.0
//
// Implements kernels.hpp over a vector type that the including file defines: `vec`, `lanes`, load, store, splat, fma,
// add, mul, sub, max, greater, keep (zero where the mask has no bit); and over vectors of as many 32-bit `words`:
// load_words, splat_word, multiply (to 64 bits), exclusive_or, lower_at_least and upper_at_least (of 16-bit halves).
// Functions of other headers must not be called here: they would be compiled for this instruction set, and the linker
// might keep that copy for all callers.

template <class T, unsigned Flags> void forward(const pass_of<T>& p) {
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

inline void spill(const vec& v, double* out) {
  alignas(64) float f[lanes];
  store(f, v);
  for (std::size_t l = 0; l < lanes; ++l) out[l] += f[l];
}

// Elements of a lane that are summed in fp32 before the sum is added to a double. A variance summed in fp32 over an
// image of 224 x 224 is wrong by 5e-6; up to 32 x 32 elements no error is visible.
constexpr std::size_t floats_in_a_row = 1024;

template <class T> void moments(const pass_of<T>& p, double* sums, double* squares) {
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
inline void each_gradient(const pass_of<T>& p, std::size_t s, const F& f, const Pause& pause) {
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

template <class T, bool Pool, bool Residual> void reduce(const pass_of<T>& p, double* sums, double* products) {
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

template <class T, unsigned Flags> void backward(const pass_of<T>& p) {
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

// Philox 4x32-10 (regatta/random.hpp) for `lanes` counters at once.
struct counters {
  words word[4];
};
inline void philox(counters& c, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    words high0, low0, high1, low1;
    multiply(c.word[0], 0xD2511F53, high0, low0);
    multiply(c.word[2], 0xCD9E8D57, high1, low1);
    c.word[0] = exclusive_or(exclusive_or(high1, c.word[1]), splat_word(key0));
    c.word[1] = low1;
    c.word[2] = exclusive_or(exclusive_or(high0, c.word[3]), splat_word(key1));
    c.word[3] = low0;
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
}

void dropout(const dropout_pass& p) {
  const auto key0 = static_cast<std::uint32_t>(p.seed), key1 = static_cast<std::uint32_t>(p.seed >> 32);
  const std::size_t first = p.first_channel * p.spatial; // canonical index of the block's first element
  // Lane l draws the bits of group block + l * step; a group is 8 elements in canonical order.
  auto draw = [&](std::uint64_t sample, std::size_t block, std::size_t step) {
    alignas(64) std::uint32_t groups[lanes];
    for (std::size_t l = 0; l < lanes; ++l) groups[l] = static_cast<std::uint32_t>(block + l * step);
    counters c = {{splat_word(static_cast<std::uint32_t>(sample)), splat_word(static_cast<std::uint32_t>(sample >> 32)),
                   load_words(groups), splat_word(0)}};
    philox(c, key0, key1);
    return c;
  };
  for (std::size_t s = 0; s < p.samples; ++s) {
    mask_word* mask = p.mask + s * p.mask_stride;
    const std::uint64_t sample = p.sample + s;
    if (p.spatial % 8 == 0) { // one draw covers 8 positions of every channel
      for (std::size_t i = 0; i < p.spatial; i += 8) {
        const counters c = draw(sample, (first + i) / 8, p.spatial / 8);
        for (std::size_t k = 0; k < 4; ++k) {
          mask[i + 2 * k] = lower_at_least(c.word[k], p.threshold);
          mask[i + 2 * k + 1] = upper_at_least(c.word[k], p.threshold);
        }
      }
    } else { // a lane draws 8 elements, which may belong to two channels
      for (std::size_t i = 0; i < p.spatial; ++i) mask[i] = 0;
      const std::size_t groups = lanes * p.spatial / 8;
      for (std::size_t g = 0; g < groups; g += lanes) {
        const counters c = draw(sample, first / 8 + g, 1);
        for (std::size_t k = 0; k < 8; ++k) {
          const mask_word stays =
              k % 2 ? upper_at_least(c.word[k / 2], p.threshold) : lower_at_least(c.word[k / 2], p.threshold);
          for (std::size_t l = 0; l < lanes && g + l < groups; ++l) {
            const std::size_t e = (g + l) * 8 + k;
            mask[e % p.spatial] |= static_cast<mask_word>((stays >> l & 1) << (e / p.spatial));
          }
        }
      }
    }
  }
}

template <class To, class From> void copy(To* y, const From* x, std::size_t count) {
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) store(y + i, load(x + i));
  if (i == count) return;
  alignas(64) From in[lanes] = {};
  alignas(64) To out[lanes];
  for (std::size_t l = 0; i + l < count; ++l) in[l] = x[i + l];
  store(out, load(in));
  for (std::size_t l = 0; i + l < count; ++l) y[i + l] = out[l];
}

void add_floats(float* y, const float* x, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] += x[i];
}
// Adds whole vectors: bf16 activations are padded to them.
void add_halves(bf16* y, const bf16* x, std::size_t count) {
  for (std::size_t i = 0; i < count; i += lanes) store(y + i, add(load(y + i), load(x + i)));
}

template <class T, unsigned... Flags>
constexpr pass_table<T> passes_of(void (*add_to)(T*, const T*, std::size_t), flags<Flags...>) {
  return {&moments<T>,
          {&forward<T, Flags>...},
          {&reduce<T, false, false>, &reduce<T, true, false>},
          &reduce<T, false, true>,
          {&backward<T, Flags>...},
          add_to};
}

constexpr kernel_table table_of(const char* name, const sequence_kernels& rows) {
  return {passes_of<float>(&add_floats, all_flags{}),
          name,
          lanes,
          passes_of<bf16>(&add_halves, all_flags{}),
          &dropout,
          rows,
          &copy<float, bf16>,
          &copy<bf16, float>};
}
