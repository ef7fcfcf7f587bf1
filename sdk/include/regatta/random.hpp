// SPDX-License-Identifier: Apache-2.0
//
// Counter-based random numbers: a number is a pure function of a seed and of an address (where it is used); the order
// of draws and the number of ranks have no effect. Bits, uniforms and indices are equal on every machine; normals use
// log, cos and sin of the C library, and may differ between two libraries in the last bits. Philox 4x32-10 of Salmon,
// Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), section 3.3.
//
//   auto four = rg::random_normals(seed, element / 4, tensor, rg::stream_init);
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace rg {

using bits4 = std::array<std::uint32_t, 4>;

// The purpose of the numbers, the last part of their address: numbers of different purposes are independent. Plugins
// use values from 1024 on.
enum : std::uint32_t { stream_init = 1, stream_dropout = 2, stream_data = 3, stream_shuffle = 4, stream_sampling = 5 };

// [any] Returns 128 random bits: ten rounds of Philox. Different counters or keys give independent bits.
constexpr bits4 philox(bits4 counter, std::uint32_t key0, std::uint32_t key1) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key0, static_cast<std::uint32_t>(p1),
               static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key1, static_cast<std::uint32_t>(p0)};
    key0 += 0x9E3779B9; // the golden ratio
    key1 += 0xBB67AE85; // sqrt(3) - 1
  }
  return counter;
}

// [any] Returns 128 bits for the address (a, b, c) under `seed`.
constexpr bits4 random_bits(std::uint64_t seed, std::uint64_t a, std::uint32_t b = 0, std::uint32_t c = 0) noexcept {
  return philox({static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(a >> 32), b, c},
                static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
}

// Returns a seed for numbers that need a longer address than (a, b, c): under derive_seed(seed, step, layer, purpose) a
// number has the address (sample, element). The seed consists of the first two words of random_bits(seed, a, b, c), so
// draw no numbers at (a, b, c) under `seed`.
constexpr std::uint64_t derive_seed(std::uint64_t seed, std::uint64_t a, std::uint32_t b = 0,
                                    std::uint32_t c = 0) noexcept {
  const bits4 r = random_bits(seed, a, b, c);
  return r[0] | std::uint64_t{r[1]} << 32;
}

// Returns a number from 0 to below 1, a multiple of 2^-24 (exact in a float), from a word of random bits.
constexpr float to_uniform(std::uint32_t bits) noexcept {
  return static_cast<float>(bits >> 8) * 0x1p-24F;
}

// Returns two independent normal numbers with mean 0 and standard deviation 1 (Box and Muller), from two words of
// random bits.
inline std::array<float, 2> to_normals(std::uint32_t x, std::uint32_t y) noexcept {
  const double radius = std::sqrt(-2.0 * std::log((static_cast<double>(x) + 1.0) * 0x1p-32)); // log(0) cannot happen
  const double angle = 6.283185307179586477 * 0x1p-32 * static_cast<double>(y);
  return {static_cast<float>(radius * std::cos(angle)), static_cast<float>(radius * std::sin(angle))};
}

// Returns four numbers for the address (a, b, c) under `seed`, each by to_uniform().
inline std::array<float, 4> random_uniforms(std::uint64_t seed, std::uint64_t a, std::uint32_t b = 0,
                                            std::uint32_t c = 0) noexcept {
  const bits4 r = random_bits(seed, a, b, c);
  return {to_uniform(r[0]), to_uniform(r[1]), to_uniform(r[2]), to_uniform(r[3])};
}

// Returns four numbers for the address (a, b, c) under `seed`, by to_normals().
inline std::array<float, 4> random_normals(std::uint64_t seed, std::uint64_t a, std::uint32_t b = 0,
                                           std::uint32_t c = 0) noexcept {
  const bits4 r = random_bits(seed, a, b, c);
  const auto [n0, n1] = to_normals(r[0], r[1]);
  const auto [n2, n3] = to_normals(r[2], r[3]);
  return {n0, n1, n2, n3};
}

// Returns an integer from 0 to range - 1, from a word of random bits; range is at least 1. The probabilities differ by
// at most a factor of 1 + 1 / floor(2^32 / range) (Lemire's multiplication in place of a remainder).
constexpr std::uint32_t to_index(std::uint32_t bits, std::uint32_t range) noexcept {
  return static_cast<std::uint32_t>(std::uint64_t{bits} * range >> 32);
}

} // namespace rg
