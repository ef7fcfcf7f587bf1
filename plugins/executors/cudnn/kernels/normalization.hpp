// SPDX-License-Identifier: Apache-2.0
//
// Kernels for batch norm and layer norm. Kernels are enqueued in stream `s`, and the call returns at once. Pointers are
// to memory that the device can access; void pointers are to elements of type `t`. With an add_* flag the result is
// added to that output, else it overwrites it. Inputs and outputs must not overlap unless a comment says so. Sizes and
// indices are not checked, and a kernel handles less than 2^32 elements. device::check_launch() reports errors of a
// launch. p is the layout of the image of a sample; a feature vector is an image with spatial = 1. For batch norm,
// `partials` is scratch of partials_of() floats (channel_sums.hpp).
#pragma once

#include "kernels/element_functions.hpp"

#include <cuda_runtime_api.h>

namespace cudnn::kernels {

// Batch norm (Ioffe and Szegedy 2015), optionally followed by the addition of a residual and a ReLU. batch_statistics()
// or running_statistics() writes mean and inverse; batch_norm() and batch_norm_gradient() read them.
struct batch_norm_args {
  image_layout p;
  std::size_t samples;
  const float *scale, *bias; // per channel
  float *mean, *inverse;     // per channel; inverse = 1 / sqrt(variance + epsilon)
  float epsilon;
};
// Computes mean and inverse of x, with the biased variance. Updates the running statistics, per channel: r = momentum *
// r + (1 - momentum) * the batch's; the variance here is biased, too (PyTorch's running_var is not).
void batch_statistics(cudaStream_t s, dtype t, const batch_norm_args& n, const void* x, float* running_mean,
                      float* running_variance, float momentum, float* partials);
// Sets mean and inverse from the running statistics, for evaluation.
void running_statistics(cudaStream_t s, const batch_norm_args& n, const float* running_mean,
                        const float* running_variance);
// y = relu(scale (x - mean) inverse + bias + residual); the residual may be null, and the ReLU is applied if `relu`.
void batch_norm(cudaStream_t s, dtype t, const batch_norm_args& n, const void* x, const void* residual, bool relu,
                void* y);
// The outputs of batch_norm_gradient(). dx and dresidual may be null. They may be the same memory if add_residual
// is set: the sum of both gradients is then stored there. dscale and dbias are per channel.
struct batch_norm_gradients {
  void *dx, *dresidual;
  bool add_dx, add_residual;
  float *dscale, *dbias;
  bool add_scale, add_bias;
};
// Computes the gradients of x, the residual, scale and bias, where mean and inverse are of this batch. With `relu`,
// elements with y <= 0 get no gradient; else y is not read.
void batch_norm_gradient(cudaStream_t s, dtype t, const batch_norm_args& n, const void* x, const void* y,
                         const void* dy, bool relu, const batch_norm_gradients& g, float* partials);

// Layer norm (Ba, Kiros and Hinton 2016) of `rows` rows of `size` elements, with the biased variance. layer_norm()
// writes mean and inverse, the gradient reads them.
struct layer_norm_args {
  std::size_t rows;
  std::uint32_t size;
  const float *scale, *bias; // [size]
  float *mean, *inverse;     // [rows]; inverse = 1 / sqrt(variance + epsilon)
  float epsilon;
};
void layer_norm(cudaStream_t s, dtype t, const layer_norm_args& n, const void* x, void* y);
// dx, of type t, may be null.
struct layer_norm_gradients {
  void* dx;
  float *dscale, *dbias; // [size]
  bool add_dx, add_scale, add_bias;
};
std::size_t layer_norm_partials(std::size_t rows, std::uint32_t size); // size of `partials`, in floats
void layer_norm_gradient(cudaStream_t s, dtype t, const layer_norm_args& n, const void* x, const void* dy,
                         const layer_norm_gradients& g, float* partials);

} // namespace cudnn::kernels
