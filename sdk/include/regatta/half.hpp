// SPDX-License-Identifier: Apache-2.0
//
// Conversions of one number between fp32 and the two 16-bit types: round to nearest, ties to even; numbers too large
// for the type become infinite, NaN stays NaN. They select instead of branching, so that compilers vectorise loops over
// them (simd.hpp).
#pragma once

#include <bit>
#include <cstdint>

namespace rg {

constexpr std::uint16_t to_bf16(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  return static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? (bits >> 16) | 0x40U : rounded);
}

constexpr float from_bf16(std::uint16_t x) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16);
}

// After Giesen, "Float to half conversion" (2012): adding 0.5 rounds values that become subnormal.
constexpr std::uint16_t to_fp16(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
  const std::uint32_t normal = (magnitude - (112U << 23) + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
  const std::uint32_t finite = magnitude < 0x38800000U ? subnormal : normal; // below 2^-14
  const std::uint32_t known = magnitude >= 0x477ff000U ? 0x7c00U : finite;   // from 65520 on
  const std::uint32_t result = magnitude > 0x7f800000U ? 0x7e00U : known;
  return static_cast<std::uint16_t>(result | ((bits >> 16) & 0x8000U));
}

constexpr float from_fp16(std::uint16_t x) noexcept {
  const std::uint32_t magnitude = (static_cast<std::uint32_t>(x) & 0x7fffU) << 13;
  const std::uint32_t exponent = magnitude & (0x7c00U << 13);
  const std::uint32_t normal = magnitude + (112U << 23);
  const std::uint32_t special = magnitude + (224U << 23);
  const auto subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude + (113U << 23)) - std::bit_cast<float>(113U << 23));
  const std::uint32_t finite = exponent == 0 ? subnormal : normal;
  const std::uint32_t result = exponent == (0x7c00U << 13) ? special : finite;
  return std::bit_cast<float>(result | ((static_cast<std::uint32_t>(x) & 0x8000U) << 16));
}

} // namespace rg
