// SPDX-License-Identifier: Apache-2.0
//
// Implements dropout.hpp.

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

void draw_blocked(const dropout_pass& p) {
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

void apply(const std::uint8_t* mask, std::size_t first_bit, const float* x, float* y, std::size_t size, float scale) {
  const vec factor = splat(scale);
  each_vector(size, [&](std::size_t i, const auto& get, const auto& put) {
    put(y, keep(bits_at(mask, first_bit + i), mul(get(x), factor)));
  });
}

constexpr dropout_kernels dropout_table = {&draw_blocked, &draw, &apply};
