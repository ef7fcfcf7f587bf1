// SPDX-License-Identifier: Apache-2.0
//
// Places tensors in one allocation: two that are never needed at the same time, as many gradients of activations, may
// share memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace cudnn {

// A tensor of `bytes`, used from moment `begin` to moment `end`, both included. Moments are any ascending numbers.
struct lifetime {
  std::size_t begin, end, bytes;
  std::size_t offset = 0; // set by plan_memory()
};

// Rounds up to a multiple of 256 bytes, the alignment of cudaMalloc, at which tensors in one allocation start.
inline std::size_t aligned(std::size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

// Sets all offsets, multiples of 256, so that tensors with a common moment do not overlap, and returns the total size
// in bytes. Places the largest tensor first, each at the lowest offset that fits.
inline std::size_t plan_memory(std::vector<lifetime>& all) {
  std::vector<std::size_t> order(all.size()), placed;
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return all[a].bytes > all[b].bytes; });
  std::size_t total = 0;
  for (const std::size_t i : order) {
    lifetime& mine = all[i];
    std::size_t at = 0;
    for (const std::size_t k : placed) { // in ascending order of offset
      const lifetime& other = all[k];
      if (other.end < mine.begin || mine.end < other.begin) continue;
      if (at + mine.bytes <= other.offset) break;
      at = std::max(at, aligned(other.offset + other.bytes));
    }
    mine.offset = at;
    total = std::max(total, at + mine.bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                   [&](std::size_t a, std::size_t b) { return all[a].offset < all[b].offset; }),
                  i);
  }
  return total;
}

} // namespace cudnn
