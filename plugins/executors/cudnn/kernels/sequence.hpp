// SPDX-License-Identifier: Apache-2.0
//
// Kernels that select positions of sequences. Kernels are enqueued in stream `s`, and the call returns at once.
// Pointers are to memory that the device can access; void pointers are to elements of type `t`. With `add` the result
// is added to the output, else it overwrites it. Inputs and outputs must not overlap. Sizes and indices are not
// checked, and a kernel handles less than 2^32 elements. device::check_launch() reports errors of a launch.
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
