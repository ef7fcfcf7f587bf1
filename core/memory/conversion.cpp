// SPDX-License-Identifier: Apache-2.0
#include "memory/conversion.hpp"

#include <regatta/half.hpp>
#include <regatta/simd.hpp>

#include <cstddef>

namespace regatta::conversion {

using rg::from_bf16, rg::from_fp16, rg::to_bf16, rg::to_fp16;

namespace {

void narrow_loop(half type, std::span<std::uint16_t> to, std::span<const float> from) noexcept {
  if (type == half::bf16)
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = to_bf16(from[i]);
  else
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = to_fp16(from[i]);
}

void widen_loop(half type, std::span<float> to, std::span<const std::uint16_t> from) noexcept {
  if (type == half::bf16)
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = from_bf16(from[i]);
  else
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = from_fp16(from[i]);
}

void add_loop(half type, std::span<float> to, std::span<const std::uint16_t> from) noexcept {
  if (type == half::bf16)
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += from_bf16(from[i]);
  else
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += from_fp16(from[i]);
}

void round_loop(half type, std::span<float> x) noexcept {
  if (type == half::bf16)
    for (float& v : x) v = from_bf16(to_bf16(v));
  else
    for (float& v : x) v = from_fp16(to_fp16(v));
}

} // namespace

void narrow(half type, std::span<std::uint16_t> to, std::span<const float> from) noexcept {
  rg::simd::widest<narrow_loop>(type, to, from);
}

void widen(half type, std::span<float> to, std::span<const std::uint16_t> from) noexcept {
  rg::simd::widest<widen_loop>(type, to, from);
}

void add(half type, std::span<float> to, std::span<const std::uint16_t> from) noexcept {
  rg::simd::widest<add_loop>(type, to, from);
}

void round(half type, std::span<float> x) noexcept {
  rg::simd::widest<round_loop>(type, x);
}

} // namespace regatta::conversion
