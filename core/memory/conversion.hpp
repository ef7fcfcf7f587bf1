// SPDX-License-Identifier: Apache-2.0
//
// Conversions between fp32 and the two 16-bit types: round to nearest, ties to even; values too large for fp16 become
// infinite, NaN stays NaN. Results are bit-identical on all instruction sets. [any]; allocates nothing.
#pragma once

#include <cstdint>
#include <span>

namespace regatta::conversion {

enum class half { fp16, bf16 };

// Requires that the two spans of a call have the same length and do not overlap.
void narrow(half type, std::span<std::uint16_t> to, std::span<const float> from) noexcept;
void widen(half type, std::span<float> to, std::span<const std::uint16_t> from) noexcept;
// to += from
void add(half type, std::span<float> to, std::span<const std::uint16_t> from) noexcept;
// x = x rounded to `type` and widened again
void round(half type, std::span<float> x) noexcept;

} // namespace regatta::conversion
