// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace regatta {

// Floating-point operations of one round of multiply_add().
inline constexpr double multiply_add_flops = 2.0 * 256;

// [any] Keeps the multiply-add units of a core busy, in registers, for `rounds` rounds. Returns a value that depends on
// all rounds.
float multiply_add(std::size_t rounds, float a, float b);

} // namespace regatta
