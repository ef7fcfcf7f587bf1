// SPDX-License-Identifier: Apache-2.0
//
// Kernels for cosine similarity. Kernels are enqueued in stream `s`, and the call returns at once. Pointers are to
// memory that the device can access; void pointers are to elements of type `t`. With `add` the result is added to the
// output, else it overwrites it. Inputs and outputs must not overlap. Sizes and indices are not checked, and a kernel
// handles less than 2^32 elements. device::check_launch() reports errors of a launch.
#pragma once

#include "kernels/dtype.hpp"

#include <cuda_runtime_api.h>

namespace cudnn::kernels {

// y[r] = a . b / (|a| |b|) of rows of `size`; 0, with zero gradients, if |a| |b| < 1e-12. sizes[r]: 3 floats that
// cosine() writes and the gradient reads.
void cosine(cudaStream_t s, dtype t, const void* a, const void* b, void* y, float* sizes, std::size_t rows,
            std::uint32_t size);
// Computes the gradient of argument a. For the gradient of the other argument, exchange a and b and set `second`.
void cosine_gradient(cudaStream_t s, dtype t, const void* a, const void* b, const void* dy, const float* sizes,
                     bool second, void* da, std::size_t rows, std::uint32_t size, bool add);

} // namespace cudnn::kernels
