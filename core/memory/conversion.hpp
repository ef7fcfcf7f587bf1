// SPDX-License-Identifier: Apache-2.0
//
// Between fp32 and the two types of 16 bits: to the nearest, ties to even; what is too large for fp16 becomes infinite,
// NaN stays NaN. Bits do not depend on the machine's instruction set. [any], nothing is allocated.
#pragma once

#include <cstdint>
#include <span>

namespace regatta::conversion {

enum class half { fp16, bf16 };

// Both spans of a call are equally long and do not overlap, but for round.
void narrow(half type, std::span<std::uint16_t> to, std::span<const float> from) noexcept;
void widen(half type, std::span<float> to, std::span<const std::uint16_t> from) noexcept;
// to += from
void add(half type, std::span<float> to, std::span<const std::uint16_t> from) noexcept;
// x = what it is after a way through `type`
void round(half type, std::span<float> x) noexcept;

} // namespace regatta::conversion
