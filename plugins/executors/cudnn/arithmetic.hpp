// SPDX-License-Identifier: Apache-2.0
//
// Kernels for the operations of strategies and optimizers, as device.h (regatta.device/1) defines them. The conventions
// of maps.hpp hold. Compiled without fused multiply-add, so results are bit-identical to the host's except for the
// order of sums.
#pragma once

#include "numbers.hpp"

#include <cuda_runtime_api.h>
#include <regatta/device.h>

namespace cudnn::kernels {

void fill(cudaStream_t s, float* y, float a, std::size_t n);
void fill_at(cudaStream_t s, float* y, std::size_t size, const std::int32_t* places, float a, std::size_t n);
void axpy(cudaStream_t s, float* y, float a, const float* x, std::size_t n);
void axpy(cudaStream_t s, double* y, double a, const double* x, std::size_t n);
void axpy_at(cudaStream_t s, float* y, std::size_t size, const std::int32_t* places, float a, const float* x,
             std::size_t n);
void scale(cudaStream_t s, float* y, float a, std::size_t n);
// u = a u + g, then v += u
void accumulate(cudaStream_t s, float* u, float a, const float* g, float* v, std::size_t n);
// y = x, rounded to the wire type and back
void round(cudaStream_t s, number wire, float* y, const float* x, std::size_t n);

// out = {count of elements that are not finite, sum of squares of the others}, or added to it. scratch: norm_scratch
// doubles.
constexpr std::size_t norm_scratch = 2 * 1024 + 2;
void norm(cudaStream_t s, const float* x, std::size_t n, double* out, bool add, double* scratch);
// y *= min(1, most / its norm); unchanged if an element is not finite
void clip(cudaStream_t s, float* y, double most, std::size_t n, double* scratch);

void update(cudaStream_t s, const rg_update& u, float* weights, const float* gradients, std::size_t n);

// Copies or adds n rows of `row` elements; an index outside of 0 .. rows - 1 is skipped.
void gather_rows(cudaStream_t s, float* to, const float* from, const std::int64_t* index, std::size_t n,
                 std::size_t row, std::size_t rows);
void scatter_rows(cudaStream_t s, float* to, const float* from, const std::int64_t* index, std::size_t n,
                  std::size_t row, std::size_t rows, bool add);

// Selects the elements of x whose magnitude is above |threshold|, in ascending order of index: writes the indices
// and values of the first `room` of them, and sets *found to their number. Requires n < 2^31. scratch:
// selection_scratch(n) bytes.
std::size_t selection_scratch(std::size_t n);
void select_above(cudaStream_t s, const float* x, std::size_t n, float threshold, std::int32_t* places, float* values,
                  std::size_t room, std::uint64_t* found, void* scratch);
// Selects the k elements with the largest magnitudes, in ascending order of index; the first of equals; NaN counts
// as the largest. Requires n < 2^31. scratch: selection_scratch(n) bytes.
void top_k(cudaStream_t s, const float* x, std::size_t n, std::int32_t* places, float* values, std::size_t k,
           void* scratch);

} // namespace cudnn::kernels
