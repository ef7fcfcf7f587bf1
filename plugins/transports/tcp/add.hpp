// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>

namespace tcp {

namespace detail {
// Data may be unaligned; the memcpys compile to unaligned vector loads and stores.
[[gnu::always_inline]] inline void add_loop(std::byte* target, const std::byte* source, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    float a, b;
    std::memcpy(&a, target + 4 * i, 4);
    std::memcpy(&b, source + 4 * i, 4);
    a += b;
    std::memcpy(target + 4 * i, &a, 4);
  }
}
#ifdef __x86_64__
[[gnu::target("avx2")]] inline void add_avx2(std::byte* target, const std::byte* source, std::size_t count) {
  add_loop(target, source, count);
}
#endif
} // namespace detail

// target[i] += source[i] for `count` floats, which may be unaligned; the arrays must not overlap. The result is
// bit-identical with any instruction set.
inline void add_floats(std::byte* target, const std::byte* source, std::size_t count) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) return detail::add_avx2(target, source, count);
#endif
  detail::add_loop(target, source, count);
}

} // namespace tcp
