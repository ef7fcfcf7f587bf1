// SPDX-License-Identifier: Apache-2.0
//
// Element-wise arithmetic on host memory. Results do not depend on the instruction set the machine has. [any], nothing
// is allocated, nothing is checked: both spans of a call are equally long.
#pragma once

#include <span>

namespace regatta::arithmetic {

// y = a
void fill(std::span<float> y, float a) noexcept;

// y = x; they may overlap
void copy(std::span<float> y, std::span<const float> x) noexcept;

// y += a * x; y and x are the same memory or do not overlap, here and below
void axpy(std::span<float> y, float a, std::span<const float> x) noexcept;

// y += x
void add(std::span<float> y, std::span<const float> x) noexcept;
void add(std::span<double> y, std::span<const double> x) noexcept;

// y *= a
void scale(std::span<float> y, float a) noexcept;

// u = a * u + g, then v += u: momentum, and its sum (Lin et al., Deep Gradient Compression, equation 4)
void accumulate(std::span<float> u, float a, std::span<const float> g, std::span<float> v) noexcept;

// What gradients are judged by, before clipping or skipping an update.
struct norm {
  double not_finite = 0;     // number of elements that are infinite or not a number
  double sum_of_squares = 0; // of the others
};

// One pass, summed in double in an order that depends on the length alone.
norm sum_of_squares(std::span<const float> x) noexcept;

} // namespace regatta::arithmetic
