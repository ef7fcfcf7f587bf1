// SPDX-License-Identifier: Apache-2.0
//
// The order of a dataset's samples: a function of seed and position alone, so that no rank keeps a list. Here a
// position is the number of a sample in the sequence of all samples of all epochs.
#pragma once

#include <bit>
#include <cstdint>

#include <regatta/random.hpp>

namespace regatta {

// [any] Returns the image of `i` (i < n) under a permutation of 0 .. n-1 that depends on `key`. A Feistel network,
// which is a permutation for any round function, permutes the numbers below the least power of four that is n or more.
// It is repeated until the result is below n (cycle walking: Black and Rogaway, "Ciphers with arbitrary finite
// domains", 2002), fewer than four times on average.
constexpr std::uint64_t permuted(std::uint64_t i, std::uint64_t n, std::uint64_t key) noexcept {
  const int half = (std::bit_width(n - 1) + 1) / 2;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  do {
    std::uint64_t left = i >> half, right = i & mask;
    for (std::uint64_t round = 1; round <= 6; ++round) {
      std::uint64_t z = right + key + round * 0x9E3779B97F4A7C15; // the mixer of SplitMix64 (Steele et al., 2014)
      z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
      z = (z ^ z >> 27) * 0x94D049BB133111EB;
      const std::uint64_t next = left ^ ((z ^ z >> 31) & mask);
      left = right;
      right = next;
    }
    i = left << half | right;
  } while (i >= n);
  return i;
}

// The order of a dataset of `size` samples.
struct sample_order {
  std::uint64_t size; // at least 1 when at() is called
  bool shuffle;       // true: another order in each epoch; false: always that of the files
  std::uint64_t seed;

  // [any] Returns the index, below `size`, of the sample at a position. Positions continue over epochs: position / size
  // is the epoch. Each epoch has every sample once.
  constexpr std::uint64_t at(std::uint64_t position) const noexcept {
    const std::uint64_t epoch = position / size, place = position % size;
    return shuffle ? permuted(place, size, rg::derive_seed(seed, epoch, 0, rg::stream_shuffle)) : place;
  }
};

} // namespace regatta
