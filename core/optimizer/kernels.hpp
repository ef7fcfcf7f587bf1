// SPDX-License-Identifier: Apache-2.0
//
// The inner loops of the optimizer: each reads and writes every element once.
#pragma once

#include <cstddef>

#include <regatta/device.h>

namespace regatta::optimizer_kernels {

// Constants for a range of elements that share them. device.h has the formulas, which devices compute too.
using coefficients = rg_update;

// Updates n weights `w` by the rule of `c` and the gradients `g`. c.a and c.b are the optimizer state. The arrays must
// not overlap.
void update(const coefficients& c, float* w, const float* g, std::size_t n) noexcept;

// Updates `count` rows of n weights by the rule of `c`; each row's state follows its weights in memory. g [count, n]
// are the gradients. Ignores c.a and c.b.
void update_rows(const coefficients& c, float* const* rows, const float* g, std::size_t n, std::size_t count) noexcept;

} // namespace regatta::optimizer_kernels
