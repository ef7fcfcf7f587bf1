// SPDX-License-Identifier: Apache-2.0
//
// Kernels for pooling. Kernels are enqueued in stream `s`, and the call returns at once. Pointers are to memory that
// the device can access; void pointers are to elements of type `t`. With `add` the result is added to the output, else
// it overwrites it. Inputs and outputs must not overlap. Sizes and indices are not checked, and a kernel handles less
// than 2^32 elements. device::check_launch() reports errors of a launch.
#pragma once

#include "kernels/element_functions.hpp"
#include "kernels/pooling_window.hpp"

#include <cuda_runtime_api.h>

namespace cudnn::kernels {

// Pooling. p: layout of the input; q: layout of the output, with the same channels and channels_last; w.step is set
// by p. positions: `samples` images in layout q, which hold for each output the position y * width + x of its
// maximum in the input's channel; max_pool() writes it, the gradient reads it. An average is over the elements of the
// window inside the image. The gradients are sums in a fixed order.
void max_pool(cudaStream_t s, dtype t, window w, const image_layout& p, const image_layout& q, const void* x, void* y,
              std::int32_t* positions, std::size_t samples);
void max_pool_gradient(cudaStream_t s, dtype t, window w, const image_layout& p, const image_layout& q, const void* dy,
                       const std::int32_t* positions, void* dx, std::size_t samples, bool add);
void average_pool(cudaStream_t s, dtype t, window w, const image_layout& p, const image_layout& q, const void* x,
                  void* y, std::size_t samples);
void average_pool_gradient(cudaStream_t s, dtype t, window w, const image_layout& p, const image_layout& q,
                           const void* dy, void* dx, std::size_t samples, bool add);

} // namespace cudnn::kernels
