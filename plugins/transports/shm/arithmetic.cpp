// SPDX-License-Identifier: Apache-2.0
#include "arithmetic.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace shm {

namespace {

// GCC's vector types: one loop, compiled for three instruction sets. (target_clones would do this, too, but its
// resolvers run before a sanitizer is initialised.)
using vector = float __attribute__((vector_size(64)));
constexpr std::size_t width = sizeof(vector) / sizeof(float);

// Elements of a partial sum, which stays in the L1 cache.
constexpr std::size_t block = 2048;

#define SHM_INLINE inline __attribute__((always_inline))

// memcpy because the data may be unaligned; it compiles to one instruction.
template <class T> SHM_INLINE void load(T& value, const float* from) {
  std::memcpy(&value, from, sizeof value);
}
template <class T> SHM_INLINE void store(float* to, const T& value) {
  std::memcpy(to, &value, sizeof value);
}

// Calls step(x, i) for consecutive ranges that cover `count` elements. The type of x, a vector or a float, is the range
// at i.
template <class F> SHM_INLINE void for_all(std::size_t count, F step) {
  std::size_t i = 0;
  vector wide;
  for (; i + width <= count; i += width) step(wide, i);
  float single;
  for (; i < count; ++i) step(single, i);
}

SHM_INLINE void sum_loop(float* sum, const float* a, const float* b, std::size_t count) {
  for_all(
      count, [=](auto& x, std::size_t i) __attribute__((always_inline)) {
        std::remove_reference_t<decltype(x)> y;
        load(x, a + i);
        load(y, b + i);
        x += y;
        store(sum + i, x);
      });
}

// Two terms and two targets, the commonest case, without a partial sum in memory.
SHM_INLINE void pair_loop(const float* a, const float* b, float* first, float* second, std::size_t count) {
  for_all(
      count, [=](auto& x, std::size_t i) __attribute__((always_inline)) {
        std::remove_reference_t<decltype(x)> y;
        load(x, a + i);
        load(y, b + i);
        x += y;
        store(first + i, x);
        store(second + i, x);
      });
}

struct kernels {
  void (*pair)(const float*, const float*, float*, float*, std::size_t);
  void (*sum)(float*, const float*, const float*, std::size_t);
};

#define SHM_KERNELS(name, ...)                                                                                         \
  struct name {                                                                                                        \
    __VA_ARGS__ static void pair(const float* a, const float* b, float* x, float* y, std::size_t n) {                  \
      pair_loop(a, b, x, y, n);                                                                                        \
    }                                                                                                                  \
    __VA_ARGS__ static void sum(float* t, const float* a, const float* b, std::size_t n) { sum_loop(t, a, b, n); }     \
    static constexpr kernels table{pair, sum};                                                                         \
  };

SHM_KERNELS(baseline)
#ifdef __x86_64__
SHM_KERNELS(avx2, __attribute__((target("avx2"))))
SHM_KERNELS(avx512, __attribute__((target("avx512f"))))
#endif

const kernels& best() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) return avx512::table;
  if (__builtin_cpu_supports("avx2")) return avx2::table;
#endif
  return baseline::table;
}

const kernels& kernel = best();

} // namespace

void add(float* target, const float* source, std::size_t count) noexcept {
  kernel.sum(target, target, source, count);
}

void sum_to_all(std::span<const float* const> terms, std::span<float* const> targets, std::size_t count) noexcept {
  if (terms.size() == 2 && targets.size() == 2) {
    kernel.pair(terms[0], terms[1], targets[0], targets[1], count);
    return;
  }
  alignas(64) float sum[block];
  for (std::size_t at = 0; at < count; at += block) {
    const std::size_t n = std::min(block, count - at);
    const float* so_far = terms[0] + at;
    for (std::size_t k = 1; k < terms.size(); ++k) {
      // The last addition may write to a single target directly: all other terms of these elements have been read.
      float* const to = targets.size() == 1 && k + 1 == terms.size() ? targets[0] + at : sum;
      kernel.sum(to, so_far, terms[k] + at, n);
      so_far = to;
    }
    for (float* target : targets)
      if (target + at != so_far) std::memcpy(target + at, so_far, n * sizeof(float));
  }
}

} // namespace shm
