// SPDX-License-Identifier: Apache-2.0
#include "memory/conversion.hpp"

#include <regatta/simd.hpp>

#include <bit>
#include <cstddef>

namespace regatta::conversion {
namespace {

constexpr std::uint32_t infinity = 0x7f800000u;

// Selects instead of branches, so that the compiler vectorises the loops.
inline std::uint16_t to_bf16(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return static_cast<std::uint16_t>((bits & 0x7fffffffu) > infinity ? (bits >> 16) | 0x40u : rounded);
}

inline float from_bf16(std::uint16_t x) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16);
}

// After Giesen, "Float to half conversion" (2012): adding 0.5 rounds values that become subnormal.
inline std::uint16_t to_fp16(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const std::uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  const std::uint32_t finite = magnitude < 0x38800000u ? subnormal : normal; // below 2^-14
  const std::uint32_t known = magnitude >= 0x477ff000u ? 0x7c00u : finite;   // from 65520 on
  const std::uint32_t result = magnitude > infinity ? 0x7e00u : known;
  return static_cast<std::uint16_t>(result | ((bits >> 16) & 0x8000u));
}

inline float from_fp16(std::uint16_t x) noexcept {
  const std::uint32_t magnitude = (static_cast<std::uint32_t>(x) & 0x7fffu) << 13;
  const std::uint32_t exponent = magnitude & (0x7c00u << 13);
  const std::uint32_t normal = magnitude + (112u << 23);
  const std::uint32_t special = magnitude + (224u << 23);
  const auto subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude + (113u << 23)) - std::bit_cast<float>(113u << 23));
  const std::uint32_t finite = exponent == 0 ? subnormal : normal;
  const std::uint32_t result = exponent == (0x7c00u << 13) ? special : finite;
  return std::bit_cast<float>(result | ((static_cast<std::uint32_t>(x) & 0x8000u) << 16));
}

} // namespace

RG_SIMD void narrow(half type, std::span<std::uint16_t> to, std::span<const float> from) noexcept {
  if (type == half::bf16)
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = to_bf16(from[i]);
  else
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = to_fp16(from[i]);
}

RG_SIMD void widen(half type, std::span<float> to, std::span<const std::uint16_t> from) noexcept {
  if (type == half::bf16)
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = from_bf16(from[i]);
  else
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = from_fp16(from[i]);
}

RG_SIMD void add(half type, std::span<float> to, std::span<const std::uint16_t> from) noexcept {
  if (type == half::bf16)
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += from_bf16(from[i]);
  else
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += from_fp16(from[i]);
}

RG_SIMD void round(half type, std::span<float> x) noexcept {
  if (type == half::bf16)
    for (float& v : x) v = from_bf16(to_bf16(v));
  else
    for (float& v : x) v = from_fp16(to_fp16(v));
}

} // namespace regatta::conversion
