// SPDX-License-Identifier: Apache-2.0
//
// Matrix products in host memory, for functions of comm::run() and for models: plain loops on one thread, in blocks
// that fit a first-level cache. comm::gemm() is the same as an operation of a strategy.
//
// A product (rg_gemm) is c = alpha * op(a) * op(b) + beta * c, where op(a) is m x k, op(b) is k x n and c is m x n.
// Matrices are row-major; a_row, b_row and c_row are the elements from one stored row to the next. With the flag
// RG_GEMM_A the matrix a is stored transposed, as k x m, with RG_GEMM_B b as n x k.
#pragma once

#include <regatta/abi/operations.h>
#include <regatta/plugin.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace rg {

// An element of a matrix of RG_BF16: the upper half of an fp32 number.
struct bf16 {
  std::uint16_t bits;
  operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};

namespace detail {

// Returns whether a matrix [rows, columns], whose rows begin `row` elements apart, lies within `count` elements.
inline bool holds(std::uint64_t count, std::uint64_t rows, std::uint64_t columns, std::uint64_t row) {
  if (!rows || !columns) return true;
  return row >= columns && count >= columns && rows - 1 <= (count - columns) / row;
}

// Returns the sum of a[i * a_step] * b[i] over n elements, from 16 partial sums, which compilers keep in vectors.
template <class T> float dot(const T* a, std::size_t a_step, const T* b, std::size_t n) {
  std::array<float, 16> sums{};
  std::size_t i = 0;
  if (a_step == 1)
    for (; i + sums.size() <= n; i += sums.size())
      for (std::size_t l = 0; l < sums.size(); ++l) sums[l] += a[i + l] * b[i + l];
  for (; i < n; ++i) sums[i % sums.size()] += a[i * a_step] * b[i];
  for (std::size_t half = sums.size() / 2; half; half /= 2)
    for (std::size_t l = 0; l < half; ++l) sums[l] += sums[l + half];
  return sums[0];
}

} // namespace detail

// [any] Returns whether the stored matrices lie within buffers of `a`, `b` and `c` elements.
inline bool fits(const rg_gemm& what, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const bool a_across = what.flags & RG_GEMM_A, b_across = what.flags & RG_GEMM_B;
  return detail::holds(a, a_across ? what.k : what.m, a_across ? what.m : what.k, what.a_row) &&
         detail::holds(b, b_across ? what.n : what.k, b_across ? what.k : what.n, what.b_row) &&
         detail::holds(c, what.m, what.n, what.c_row);
}

// [any] Return the bytes that a product reads and writes (c is also read unless beta is 0), and its floating-point
// operations: its cost under a virtual clock (rg_op_run).
inline std::uint64_t bytes_of(const rg_gemm& what) {
  return size_of(what.a_type) * what.m * what.k + size_of(what.b_type) * what.k * what.n +
         size_of(what.c_type) * (what.beta != 0 ? 2 : 1) * what.m * what.n;
}
inline std::uint64_t flops_of(const rg_gemm& what) {
  return 2 * what.m * what.n * what.k;
}

// [any] Computes the product. If beta is 0, c is not read. T is the type of a and b, float or bf16; the types in `what`
// are not read. c overlaps neither a nor b. The order of each sum depends on `what` alone. Requires fits().
template <class T> void gemm(const rg_gemm& what, const T* a, const T* b, float* c) {
  const std::size_t m = what.m, n = what.n, k = what.k;
  const auto alpha = static_cast<float>(what.alpha), beta = static_cast<float>(what.beta);
  const bool a_across = what.flags & RG_GEMM_A;
  // Elements from one row of op(a) to the next, and from one column to the next.
  const std::size_t a_down = a_across ? 1 : what.a_row, a_right = a_across ? what.a_row : 1;
  constexpr std::size_t block_rows = 8, block_columns = 512; // of c: 16 KiB
  constexpr std::size_t few = 16;                            // rows of op(b)
  for (std::size_t i0 = 0; i0 < m; i0 += block_rows)
    for (std::size_t j0 = 0; j0 < n; j0 += block_columns) {
      const std::size_t i1 = std::min(m, i0 + block_rows), j1 = std::min(n, j0 + block_columns);
      for (std::size_t i = i0; i < i1; ++i)
        for (std::size_t j = j0; j < j1; ++j) {
          float& x = c[i * what.c_row + j];
          x = beta == 0 ? 0 : beta * x;
        }
      if (const bool b_across = what.flags & RG_GEMM_B; b_across && k <= few) {
        // Too short for a sum of parts: the block of op(b) is copied to rows.
        std::array<float, few * block_columns> rows;
        for (std::size_t j = j0; j < j1; ++j)
          for (std::size_t l = 0; l < k; ++l) rows[l * block_columns + j - j0] = b[j * what.b_row + l];
        for (std::size_t l = 0; l < k; ++l)
          for (std::size_t i = i0; i < i1; ++i) {
            const float factor = alpha * a[i * a_down + l * a_right];
            const float* const from = rows.data() + l * block_columns;
            float* const to = c + i * what.c_row + j0;
            for (std::size_t j = 0; j < j1 - j0; ++j) to[j] += factor * from[j];
          }
      } else if (b_across) {
        for (std::size_t j = j0; j < j1; ++j)
          for (std::size_t i = i0; i < i1; ++i)
            c[i * what.c_row + j] += alpha * detail::dot(a + i * a_down, a_right, b + j * what.b_row, k);
      } else {
        for (std::size_t l = 0; l < k; ++l)
          for (std::size_t i = i0; i < i1; ++i) {
            const float factor = alpha * a[i * a_down + l * a_right];
            const T* const from = b + l * what.b_row;
            float* const to = c + i * what.c_row;
            for (std::size_t j = j0; j < j1; ++j) to[j] += factor * from[j];
          }
      }
    }
}

} // namespace rg
