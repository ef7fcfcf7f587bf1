// SPDX-License-Identifier: Apache-2.0
//
// The optimiser's inner loops: each reads and writes every element once.
#pragma once

#include <cstddef>

#include <regatta/device.h>

namespace regatta::optimizer_kernels {

// Constants of a run of elements that share them; device.h has the formulas, for devices compute by the same.
using coefficients = rg_update;

// By the rule of `c`, whose a and b are the state. w: weights, g: gradients; n of each, none overlaps another.
void update(const coefficients& c, float* w, const float* g, std::size_t n) noexcept;

// Likewise `count` rows of n weights, each with its state behind them; g [count, n]: their gradients. By the rule of `c`,
// whose a and b are not looked at.
void update_rows(const coefficients& c, float* const* rows, const float* g, std::size_t n, std::size_t count) noexcept;

} // namespace regatta::optimizer_kernels
