// SPDX-License-Identifier: Apache-2.0
//
// The inner loops of the optimizer on host memory: each reads and writes every element once. Results do not depend on
// the machine's instruction set. All functions [any]; they allocate nothing.
#pragma once

#include <cstddef>

#include <regatta/ext/device.h>

namespace regatta::optimizer_kernels {

// The update rule, its constants and the addresses of the state, for a range of elements that share them
// (update_rule::of()). regatta/ext/device.h has the formulas, which devices compute too.
using coefficients = rg_update;

// Updates n weights `w`, and their state in c.a and c.b, by the rule of `c` and the gradients `g`. c.a and c.b have n
// elements too; those that the rule lacks are not accessed. The arrays must not overlap. Does nothing for a c.rule that
// is no rg_rule.
void update(const coefficients& c, float* w, const float* g, std::size_t n) noexcept;

// Updates `count` rows of n weights, and their state, by the rule of `c`. Each row's state follows its weights in
// memory: a at rows[i] + n, b at rows[i] + 2 n, as far as the rule has them; c.a and c.b are ignored. g [count, n] are
// the gradients. With Adam, all rows must have been updated equally often.
void update_rows(const coefficients& c, float* const* rows, const float* g, std::size_t n, std::size_t count) noexcept;

} // namespace regatta::optimizer_kernels
