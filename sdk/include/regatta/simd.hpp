// SPDX-License-Identifier: Apache-2.0
//
// Loops over arrays that use the widest vectors of the CPU on which they run.
//
//   static void add_loop(float* y, const float* x, std::size_t n) noexcept {
//     for (std::size_t i = 0; i < n; ++i) y[i] += x[i];
//   }
//   void add(float* y, const float* x, std::size_t n) noexcept { rg::simd::widest<add_loop>(y, x, n); }
//
// widest() compiles a function once per instruction set (AVX-512, AVX2, baseline) and calls the version for `chosen`.
// The functions that it calls are inlined where their definition is known (clang: if they are short); others are
// compiled once, for the baseline. On other processors than x86-64 there is one version.
//
// Results are bit-identical on every instruction set if the file is compiled with -ffp-contract=off (AVX-512 and FMA
// have fused multiply-adds) and without -ffast-math.
#pragma once

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define RG_SIMD_X86 1
#endif

namespace rg::simd {

// Instruction sets, each with those before it: the levels that oneDNN has under these names, and `baseline` for what
// the compiler assumes anyway (SSE2 on x86-64, all of another processor). widest() has no version for the last two.
enum class isa { baseline, avx2, avx512_core, avx512_core_bf16, avx512_core_amx };
inline constexpr std::array<std::string_view, 5> isa_names{"baseline", "avx2", "avx512_core", "avx512_core_bf16",
                                                           "avx512_core_amx"};

// Returns the highest level that this CPU and its kernel support. [any]
inline isa supported() noexcept {
#ifdef RG_SIMD_X86
  __builtin_cpu_init(); // constructors may run before libgcc's own
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return isa::baseline;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq"))
    return isa::avx2;
  if (!__builtin_cpu_supports("avx512bf16")) return isa::avx512_core;
  // Clang 14 does not know "amx-tile". Leaf 7: AMX-BF16, AMX-TILE and AMX-INT8; XCR0: the kernel keeps the tiles.
  unsigned a = 7, b = 0, c = 0, d = 0;
  constexpr unsigned amx = 1U << 22 | 1U << 24 | 1U << 25, tiles = 1U << 17 | 1U << 18;
  __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  if ((d & amx) != amx) return isa::avx512_core_bf16;
  __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  return (a & tiles) == tiles ? isa::avx512_core_amx : isa::avx512_core_bf16;
#else
  return isa::baseline;
#endif
}

// Returns the level that the environment variable REGATTA_ISA allows, by its name; without it, or with another text,
// the highest one. Reads the variable in each call. [main]
inline isa allowed() noexcept {
  const char* const text = std::getenv("REGATTA_ISA");
  std::size_t level = 0;
  while (level + 1 < isa_names.size() && !(text && text == isa_names[level])) ++level;
  return static_cast<isa>(level);
}

// Returns the lower one of supported() and allowed(). [main]
inline isa choose() noexcept {
  return allowed() < supported() ? allowed() : supported();
}

// The level of widest() in this plugin or program, chosen when it is loaded. The engine sets REGATTA_ISA in a rank
// before it loads the plugins.
inline isa chosen = choose();

#ifdef RG_SIMD_X86
// `Loop`, compiled for two instruction sets.
template <auto Loop> struct versions;
template <class R, class... A, bool N, R (*Loop)(A...) noexcept(N)> struct versions<Loop> {
  __attribute__((target("avx512f"), flatten)) static R avx512(A... a) { return Loop(a...); }
  __attribute__((target("avx2"), flatten)) static R avx2(A... a) { return Loop(a...); }
};
#endif

// Calls Loop(arguments), compiled for the instruction set of `chosen`, and returns its result. [any]
template <auto Loop, class... A> [[gnu::always_inline]] inline auto widest(A&&... arguments) {
#ifdef RG_SIMD_X86
  if (chosen >= isa::avx512_core) return versions<Loop>::avx512(std::forward<A>(arguments)...);
  if (chosen == isa::avx2) return versions<Loop>::avx2(std::forward<A>(arguments)...);
#endif
  return Loop(std::forward<A>(arguments)...);
}

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

// target[i] = a[i] + b[i] for `count` floats at addresses that may be unaligned. The target may be a or b. Call it
// within widest(): elsewhere it is compiled for the baseline.
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
