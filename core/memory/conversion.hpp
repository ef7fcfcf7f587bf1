// SPDX-License-Identifier: Apache-2.0
//
// Conversions between fp32 and the two 16-bit types, in host memory: round to nearest, ties to even; values too large
// for the type become infinite, NaN stays NaN. Results are bit-identical on all instruction sets. [any]; allocates
// nothing.
#pragma once

#include <cstdint>
#include <span>

namespace regatta::conversion {

enum class half { fp16, bf16 };

// narrow() converts to the 16-bit `type`, widen() from it (exactly). Here and below, both spans of a call must have the
// same length and not overlap; nothing checks it.
void narrow(half type, std::span<std::uint16_t> to, std::span<const float> from) noexcept;
void widen(half type, std::span<float> to, std::span<const std::uint16_t> from) noexcept;
// to += from
void add(half type, std::span<float> to, std::span<const std::uint16_t> from) noexcept;
// x = x rounded to `type` and widened again
void round(half type, std::span<float> x) noexcept;

} // namespace regatta::conversion
