// SPDX-License-Identifier: Apache-2.0
//
// Loops over arrays that use the widest vectors of the CPU on which they run.
//
// RG_SIMD before a function definition compiles it once per instruction set (AVX-512, AVX2, baseline); the loader
// chooses one when it loads the program or the plugin. With clang, with sanitizers and on other processors it does
// nothing. The function must be a free function and not a template. The functions that it calls are inlined where their
// definition is known; others are compiled once, for the baseline.
//
// Results are bit-identical on every instruction set if the file is compiled with -ffp-contract=off (AVX-512 and FMA
// have fused multiply-adds) and without -ffast-math.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

// Sanitizers are not initialised when the loader runs the resolvers of these functions. Clang 14 gives a
// multi-versioned function another name than its declaration. Instruction sets are named instead of micro-architectures
// ("arch=..."), because the latter need a resolver that knows each of them.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_THREAD__) &&                                  \
    !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
#define RG_SIMD __attribute__((target_clones("avx512f", "avx2", "default"), flatten))
#else
#define RG_SIMD
#endif

namespace rg::simd {

// The compiler splits a vector that is wider than the CPU's registers.
using vector16 = float __attribute__((vector_size(64)));
using vector4 = float __attribute__((vector_size(16)));

// Loads and stores a vector or a number, which may be unaligned: the memcpy compiles to one instruction.
template <class V> [[gnu::always_inline]] inline void load(V& value, const void* from) noexcept {
  std::memcpy(&value, from, sizeof value);
}
template <class V> [[gnu::always_inline]] inline void store(void* to, const V& value) noexcept {
  std::memcpy(to, &value, sizeof value);
}

// Calls step(v, i) for consecutive ranges that cover `count` elements; i is the first element of a range. v is an
// lvalue for the step's use, with undefined content; its type gives the range's length: vector16, vector4 or float.
template <class F> [[gnu::always_inline]] inline void for_each_vector(std::size_t count, const F& step) noexcept {
  std::size_t i = 0;
  vector16 sixteen;
  for (; i + 16 <= count; i += 16) step(sixteen, i);
  vector4 four;
  for (; i + 4 <= count; i += 4) step(four, i);
  float one;
  for (; i < count; ++i) step(one, i);
}

// target[i] = a[i] + b[i] for `count` floats at addresses that may be unaligned. The target may be a or b. To be called
// from functions with RG_SIMD.
[[gnu::always_inline]] inline void add(void* target, const void* a, const void* b, std::size_t count) noexcept {
  auto* t = static_cast<std::byte*>(target);
  const auto *x = static_cast<const std::byte*>(a), *y = static_cast<const std::byte*>(b);
  for_each_vector(
      count, [=](auto& v, std::size_t i) __attribute__((always_inline)) {
        std::remove_reference_t<decltype(v)> w;
        load(v, x + i * sizeof(float));
        load(w, y + i * sizeof(float));
        v += w;
        store(t + i * sizeof(float), v);
      });
}

} // namespace rg::simd
