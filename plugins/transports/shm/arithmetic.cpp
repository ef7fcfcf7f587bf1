// SPDX-License-Identifier: Apache-2.0
#include "arithmetic.hpp"

#include <regatta/simd.hpp>

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace shm {

namespace {

// Elements of a partial sum, which stays in the L1 cache.
constexpr std::size_t block = 2048;

// Another rank may have read the target since it was written, so that each store waits until that rank's core gives its
// copy of the line up. Asking for lines 1 KiB ahead hides this wait.
constexpr std::size_t ahead = 1024 / sizeof(float);

void sum_loop(float* target, const float* a, const float* b, std::size_t count) noexcept {
  const std::size_t last = count - 1; // another rank may own what lies behind the target: its line is not asked for
  rg::simd::for_each_vector(
      count, [=](auto& x, std::size_t i) __attribute__((always_inline)) {
        __builtin_prefetch(target + std::min(i + ahead, last), 1);
        std::remove_reference_t<decltype(x)> y;
        rg::simd::load(x, a + i);
        rg::simd::load(y, b + i);
        x += y;
        rg::simd::store(target + i, x);
      });
}

void sum(float* target, const float* a, const float* b, std::size_t count) noexcept {
  rg::simd::widest<sum_loop>(target, a, b, count);
}

// Two terms and two targets, the commonest case, without a partial sum in memory.
void sum_to_two_loop(const float* a, const float* b, float* first, float* second, std::size_t count) noexcept {
  rg::simd::for_each_vector(
      count, [=](auto& x, std::size_t i) __attribute__((always_inline)) {
        std::remove_reference_t<decltype(x)> y;
        rg::simd::load(x, a + i);
        rg::simd::load(y, b + i);
        x += y;
        rg::simd::store(first + i, x);
        rg::simd::store(second + i, x);
      });
}

} // namespace

void add(float* target, const float* source, std::size_t count) noexcept {
  sum(target, target, source, count);
}

void sum_to_all(std::span<const float* const> terms, std::span<float* const> targets, std::size_t count) noexcept {
  if (terms.size() == 2 && targets.size() == 2) {
    rg::simd::widest<sum_to_two_loop>(terms[0], terms[1], targets[0], targets[1], count);
    return;
  }
  alignas(64) float partial[block];
  for (std::size_t at = 0; at < count; at += block) {
    const std::size_t n = std::min(block, count - at);
    const float* so_far = terms[0] + at;
    for (std::size_t k = 1; k < terms.size(); ++k) {
      // The last addition may write to a single target directly: all other terms of these elements have been read.
      float* const to = targets.size() == 1 && k + 1 == terms.size() ? targets[0] + at : partial;
      sum(to, so_far, terms[k] + at, n);
      so_far = to;
    }
    for (float* target : targets)
      if (target + at != so_far) std::memcpy(target + at, so_far, n * sizeof(float));
  }
}

} // namespace shm
