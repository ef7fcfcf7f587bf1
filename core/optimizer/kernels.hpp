// SPDX-License-Identifier: Apache-2.0
//
// The optimiser's inner loops: each reads and writes every element once.
#pragma once

#include <cstddef>

#include <regatta/device.h>

namespace regatta::optimizer_kernels {

// Constants of a run of elements that share them; device.h has the formulas, for devices compute by the same.
using coefficients = rg_update;

// By the rule of `c`, whose a and b are the state.
void update(const coefficients& c, float* w, const float* g, std::size_t n) noexcept;

// w: weights, g: gradients, a and b: state; n of each, none overlaps another.
void sgd(const coefficients& c, float* w, const float* g, std::size_t n) noexcept;
void momentum(const coefficients& c, float* w, const float* g, float* a, std::size_t n) noexcept;
void nesterov(const coefficients& c, float* w, const float* g, float* a, std::size_t n) noexcept;
void adagrad(const coefficients& c, float* w, const float* g, float* a, std::size_t n) noexcept;
void adam(const coefficients& c, float* w, const float* g, float* a, float* b, std::size_t n) noexcept;

} // namespace regatta::optimizer_kernels
