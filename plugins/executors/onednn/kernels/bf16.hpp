// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace onednn {

// bfloat16: the upper half of an fp32 number, with 8 bits of exponent and 7 of mantissa. Conversion rounds to nearest,
// ties to even; a NaN stays a NaN.
class bf16 {
public:
  bf16() = default;
  explicit bf16(float f) {
    const auto bits = std::bit_cast<std::uint32_t>(f);
    bits_ = static_cast<std::uint16_t>(std::isnan(f) ? bits >> 16 | 0x40 : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits_} << 16); }

private:
  std::uint16_t bits_ = 0;
};

} // namespace onednn
