// SPDX-License-Identifier: Apache-2.0
//
// The kernel of dropout. Kernels are enqueued in stream `s`, and the call returns at once. Pointers are to memory that
// the device can access; void pointers are to elements of type `t`. With `add` the result is added to the output, else
// it overwrites it. Inputs and outputs must not overlap. Sizes and indices are not checked, and a kernel handles less
// than 2^32 elements. device::check_launch() reports errors of a launch.
#pragma once

#include "kernels/element_functions.hpp"

#include <cuda_runtime_api.h>

namespace cudnn::kernels {

// The random numbers of a dropout: the seed of the step and layer, and the number of the batch's first sample in the
// global batch; both in device memory. A null seed says that there is no dropout; only the functions of attention.hpp
// that mention it accept that.
struct dropout_args {
  const std::uint64_t *seed, *first;
  std::uint32_t threshold; // round(p * 65536)
  float scale;             // 1 / (1 - p)
};
// y = x * scale for kept elements, 0 for the others; the backward pass computes dx from dy in the same way. p: layout
// of a sample in both, of which there are `samples`. Requires d.seed.
void dropout(cudaStream_t s, dtype t, const dropout_args& d, const image_layout& p, const void* x, void* y,
             std::size_t samples, bool add);

} // namespace cudnn::kernels
