// SPDX-License-Identifier: Apache-2.0
//
// Element-wise arithmetic on host memory. Results do not depend on the machine's instruction set. [any]; allocates
// nothing. Requires that all spans of a call have the same length; nothing checks it.
#pragma once

#include <span>

#include <regatta/abi.h>

namespace regatta::arithmetic {

// y = a
void fill(std::span<float> y, float a) noexcept;

// y += a * x; here and below, y and x are identical or do not overlap
void axpy(std::span<float> y, float a, std::span<const float> x) noexcept;

// y += x
void add(std::span<float> y, std::span<const float> x) noexcept;

// y *= a
void scale(std::span<float> y, float a) noexcept;

// u = a * u + g, then v += u: momentum and its accumulation (Lin et al., Deep Gradient Compression, equation 4)
void accumulate(std::span<float> u, float a, std::span<const float> g, std::span<float> v) noexcept;

// c = alpha * op(a) * op(b) + beta * c (regatta/gemm.hpp); a and b are of what.a_type, RG_F32 or RG_BF16, and c must
// overlap neither
void gemm(const rg_gemm& what, const void* a, const void* b, float* c) noexcept;

// Parts of the Euclidean norm of gradients, by which an update is clipped, or skipped if an element is not finite.
// Norms of parts of an array add up member by member.
struct norm {
  double not_finite = 0;     // number of elements that are infinite or NaN
  double sum_of_squares = 0; // of the finite elements
};

// Returns both members for x. Sums in double, in an order that depends on the length alone.
norm sum_of_squares(std::span<const float> x) noexcept;

} // namespace regatta::arithmetic
