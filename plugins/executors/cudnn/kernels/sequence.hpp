// SPDX-License-Identifier: Apache-2.0
//
// Kernels that select positions of sequences. The conventions of elementwise.hpp hold.
#pragma once

#include "kernels/dtype.hpp"

#include <cuda_runtime_api.h>

namespace cudnn::kernels {

// y[b, m] = x[b, indices[b, m]], or x[b, m] if indices is null; rows of `size` elements. x has `positions` rows per
// sample, y has `taken`. dx is the sum over all m that selected the row, in ascending order, and zeros for other rows.
struct selection_args {
  std::size_t samples;
  std::uint32_t positions, taken, size;
  const std::int32_t* indices; // [samples, taken], 0 .. positions - 1
};
void select_positions(cudaStream_t s, dtype t, const selection_args& k, const void* x, void* y);
void select_positions_gradient(cudaStream_t s, dtype t, const selection_args& k, const void* dy, void* dx, bool add);

} // namespace cudnn::kernels
