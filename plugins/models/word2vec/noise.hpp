// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace word2vec_parts {

// Draws k with probability p_k in constant time (Walker, "An efficient method for generating discrete random variables
// with general distributions", 1977; construction by Vose, 1991). Requires fewer than 2^32 values. [any] after
// construction.
class alias_table {
public:
  // `p` is proportional to the probabilities. Requires at least one value, none negative, and a sum above 0.
  explicit alias_table(std::vector<double> p) : entries_(p.size()) {
    const double sum = std::accumulate(p.begin(), p.end(), 0.0), n = static_cast<double>(p.size());
    std::vector<std::uint32_t> small, large;
    for (std::size_t i = 0; i < p.size(); ++i) {
      const auto k = static_cast<std::uint32_t>(i);
      p[i] *= n / sum;
      (p[i] < 1 ? small : large).push_back(k);
      entries_[i] = {0xffffffffU, k};
    }
    while (!small.empty() && !large.empty()) {
      const std::uint32_t s = small.back(), l = large.back();
      small.pop_back();
      entries_[s] = {static_cast<std::uint32_t>(p[s] * 0x1p32), l};
      p[l] -= 1 - p[s];
      if (p[l] < 1) {
        large.pop_back();
        small.push_back(l);
      }
    }
  }
  // Returns a value drawn by 64 random bits: the upper half selects an entry, the lower half one of the entry's two
  // values.
  std::uint32_t draw(std::uint64_t bits) const {
    const std::uint32_t i = entry_of(bits);
    const entry e = entries_[i];
    const std::uint32_t is_other = static_cast<std::uint32_t>(bits) < e.threshold ? 0 : 0xffffffffU;
    return i ^ ((i ^ e.other) & is_other); // without a branch, which would be mispredicted often
  }
  // Prefetches the memory that draw() reads for the same bits.
  void prefetch(std::uint64_t bits) const { __builtin_prefetch(entries_.data() + entry_of(bits)); }

private:
  struct entry {
    std::uint32_t threshold, other;
  };
  std::uint32_t entry_of(std::uint64_t bits) const {
    return static_cast<std::uint32_t>((bits >> 32) * entries_.size() >> 32);
  }
  std::vector<entry> entries_;
};

// Returns random bits number `at` of the sequence `seed`, by SplitMix64 (Steele, Lea and Flood, "Fast splittable
// pseudorandom number generators", 2014), whose state is a counter: any element can be computed alone. Ten times as
// fast as Philox (regatta/random.hpp), whose quality noise does not need.
constexpr std::uint64_t noise_bits(std::uint64_t seed, std::uint64_t at) {
  std::uint64_t z = seed + (at + 1) * 0x9E3779B97F4A7C15; // the golden ratio
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

} // namespace word2vec_parts
