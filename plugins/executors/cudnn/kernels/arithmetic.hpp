// SPDX-License-Identifier: Apache-2.0
//
// Kernels for the operations of strategies and optimizers (rg_work). They are enqueued in stream `s`, and the call
// returns at once. Pointers are to memory that the device can access; inputs and outputs must not overlap unless a
// comment says so. n may be 2^32 or more where no comment says otherwise; sizes are not checked. device::check_launch()
// reports errors of a launch. Compiled without fused multiply-add, so results are bit-identical to the host's except
// for the order of sums.
#pragma once

#include "kernels/dtype.hpp"

#include <cuda_runtime_api.h>
#include <regatta/ext/device.h>

namespace cudnn::kernels {

// y = a
void fill(cudaStream_t s, float* y, float a, std::size_t n);
// y[indices[i]] = a for i < n. In all functions with `indices`, y has `size` elements, n < 2^32, and an index outside
// of 0 .. size - 1 is skipped.
void fill_at(cudaStream_t s, float* y, std::size_t size, const std::int32_t* indices, float a, std::size_t n);
// y += a * x
void axpy(cudaStream_t s, float* y, float a, const float* x, std::size_t n);
void axpy(cudaStream_t s, double* y, double a, const double* x, std::size_t n);
// y[indices[i]] += a * x[i] for i < n. Requires that no index occurs twice: the additions are not atomic.
void axpy_at(cudaStream_t s, float* y, std::size_t size, const std::int32_t* indices, float a, const float* x,
             std::size_t n);
// y *= a
void scale(cudaStream_t s, float* y, float a, std::size_t n);
// u = a u + g, then v += u
void accumulate(cudaStream_t s, float* u, float a, const float* g, float* v, std::size_t n);
// y = x, or with `add` y += x, where x is rounded to the wire type and back; y may be x
void round(cudaStream_t s, dtype wire, float* y, const float* x, std::size_t n, bool add);

// out[0] = count of elements that are not finite, out[1] = sum of squares of the others; with `add` both are added to
// out. scratch: norm_scratch doubles, of this stream alone.
constexpr std::size_t norm_scratch = 2 * 1024 + 2;
void norm(cudaStream_t s, const float* x, std::size_t n, double* out, bool add, double* scratch);
// y *= min(1, most / Euclidean norm of y); y is unchanged if an element is not finite. scratch as in norm().
void clip(cudaStream_t s, float* y, double most, std::size_t n, double* scratch);

// Applies u to n weights. u is read during the call; u.a and u.b, the state in device memory, when the kernel runs.
// Does nothing if u.rule is unknown.
void update(cudaStream_t s, const rg_update& u, float* weights, const float* gradients, std::size_t n);

// gather_rows: row i of `to` = row index[i] of `from`, for i < n. scatter_rows: row index[i] of `to` = row i of `from`,
// or with `add` += it; no index may occur twice. Rows have `row` elements. An index outside of 0 .. rows - 1 is
// skipped: no row is written for it. n < 2^32.
void gather_rows(cudaStream_t s, float* to, const float* from, const std::int64_t* index, std::size_t n,
                 std::size_t row, std::size_t rows);
void scatter_rows(cudaStream_t s, float* to, const float* from, const std::int64_t* index, std::size_t n,
                  std::size_t row, std::size_t rows, bool add);

// Returns the bytes of `scratch` in the functions below; its address must be a multiple of 8.
std::size_t selection_scratch(std::size_t n);
// Selects the elements of x whose magnitude is above |threshold|, NaN included, in ascending order of index. Writes the
// indices and values of the first `room` of them, and sets *found to the number of all, which may be larger; `found`
// may be null. Requires n < 2^31.
void select_above(cudaStream_t s, const float* x, std::size_t n, float threshold, std::int32_t* indices, float* values,
                  std::size_t room, std::uint64_t* found, void* scratch);
// Selects the k elements with the largest magnitudes, in ascending order of index; of equal magnitudes the first; NaN
// counts as the largest. Requires k <= n < 2^31.
void top_k(cudaStream_t s, const float* x, std::size_t n, std::int32_t* indices, float* values, std::size_t k,
           void* scratch);

} // namespace cudnn::kernels
