// SPDX-License-Identifier: Apache-2.0
//
// Sums over the elements of each channel. Kernels are enqueued in stream `s`, and the call returns at once. Pointers
// are to memory that the device can access; void pointers are to elements of type `t`. With `add` the result is added
// to the output, else it overwrites it. Inputs and outputs must not overlap. Sizes and indices are not checked, and a
// kernel handles less than 2^32 elements. device::check_launch() reports errors of a launch. A feature vector is an
// image with spatial = 1.
#pragma once

#include "kernels/element_functions.hpp"

#include <cuda_runtime_api.h>

namespace cudnn::kernels {

// Returns how many floats `partials` has in channel_sums(), batch_statistics() and batch_norm_gradient(). Its content
// is undefined before and after.
std::size_t partials_of(const image_layout& p, std::size_t samples);
// out[c] = the sum over all samples of the elements of x in channel c; with `add` it is added to out[c].
void channel_sums(cudaStream_t s, dtype t, const void* x, const image_layout& p, std::size_t samples, float* out,
                  bool add, float* partials);

} // namespace cudnn::kernels
