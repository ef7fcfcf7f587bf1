// SPDX-License-Identifier: Apache-2.0
//
// The inner loops of the optimizer on host memory: each reads and writes every element once. Results do not depend on
// the machine's instruction set. [any]; allocates nothing.
#pragma once

#include <cstddef>

#include <regatta/device.h>

namespace regatta::optimizer_kernels {

// The update rule, its constants and the addresses of the state, for a range of elements that share them
// (update_rule::of()). regatta/device.h has the formulas, which devices compute too.
using coefficients = rg_update;

// Updates n weights `w` by the rule of `c` and the gradients `g`. c.a and c.b are the state of the same n elements
// (null if the rule has none). The arrays must not overlap.
void update(const coefficients& c, float* w, const float* g, std::size_t n) noexcept;

// Updates `count` rows of n weights by the rule of `c`. Each row's state follows its weights in memory: a at
// rows[i] + n, b at rows[i] + 2 n; c.a and c.b are ignored. g [count, n] are the gradients.
void update_rows(const coefficients& c, float* const* rows, const float* g, std::size_t n, std::size_t count) noexcept;

} // namespace regatta::optimizer_kernels
