// SPDX-License-Identifier: Apache-2.0
//
// The optimiser's inner loops: each reads and writes every element once.
#pragma once

#include <cstddef>

namespace regatta::optimizer_kernels {

// Constants of a run of elements that share them; see optimizer.hpp for the formulas.
struct coefficients {
  float factor;                            // on the gradient: clipping
  float decay;                             // weight decay
  float lr;                                // Adam: with the corrections of both biases folded in
  float first;                             // momentum, or Adam's beta1
  float second;                            // Adam's beta2
  float epsilon;                           // Adam: times the root of the second bias correction
  float one_minus_first, one_minus_second; // rounded from double: 1 - 0.999F is off by 5e-5 of its value
};

// w: weights, g: gradients, a and b: state; n of each, none overlaps another.
void sgd(const coefficients& c, float* w, const float* g, std::size_t n) noexcept;
void momentum(const coefficients& c, float* w, const float* g, float* a, std::size_t n) noexcept;
void nesterov(const coefficients& c, float* w, const float* g, float* a, std::size_t n) noexcept;
void adagrad(const coefficients& c, float* w, const float* g, float* a, std::size_t n) noexcept;
void adam(const coefficients& c, float* w, const float* g, float* a, float* b, std::size_t n) noexcept;

} // namespace regatta::optimizer_kernels
