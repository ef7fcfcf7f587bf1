// SPDX-License-Identifier: Apache-2.0
//
// Kernels for squeeze-and-excitation: scaled channels. Kernels are enqueued in stream `s`, and the call returns at
// once. Pointers are to memory that the device can access; void pointers are to elements of type `t`. With `add` the
// result is added to the output, else it overwrites it. Inputs and outputs must not overlap. Sizes and indices are not
// checked, and a kernel handles less than 2^32 elements. device::check_launch() reports errors of a launch.
#pragma once

#include "kernels/element_functions.hpp"

#include <cuda_runtime_api.h>

namespace cudnn::kernels {

// y = x times the factor of its sample and channel. Factors, of type t, are [samples, channels]. The gradient of x is
// the same function of dy.
void scale_channels(cudaStream_t s, dtype t, const image_layout& p, const void* x, const void* factors, void* y,
                    std::size_t samples, bool add);
// The gradient of the factors: the sum of x dy over the positions of each channel of each sample.
void scale_channels_factors(cudaStream_t s, dtype t, const image_layout& p, const void* x, const void* dy,
                            void* dfactors, std::size_t samples, bool add);

} // namespace cudnn::kernels
