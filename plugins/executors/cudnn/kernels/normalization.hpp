// SPDX-License-Identifier: Apache-2.0
//
// Kernels for images and feature vectors: sums over channels, batch norm, pooling, channel scaling. The conventions of
// maps.hpp hold. p is the layout of the image of a sample; a feature vector is an image with spatial = 1.
#pragma once

#include "kernels/element_functions.hpp"

#include <cuda_runtime_api.h>

namespace cudnn::kernels {

// Returns how many floats `partials` has in channel_sums(), batch_statistics() and normalise_gradient(). Its content is
// undefined before and after.
std::size_t partials_of(const picture& p, std::size_t samples);
// out[c] = the sum over all samples of the elements of x in channel c; with `add` it is added to out[c].
void channel_sums(cudaStream_t s, number t, const void* x, const picture& p, std::size_t samples, float* out, bool add,
                  float* partials);

// Batch norm (Ioffe and Szegedy 2015), optionally followed by the addition of a residual and a ReLU. batch_statistics()
// or running_statistics() writes mean and inverse; normalise() and normalise_gradient() read them.
struct normalising {
  picture p;
  std::size_t samples;
  const float *scale, *bias; // per channel
  float *mean, *inverse;     // per channel; inverse = 1 / sqrt(variance + epsilon)
  float epsilon;
};
// Computes mean and inverse of x, with the biased variance. Updates the running statistics, per channel: r = momentum *
// r + (1 - momentum) * the batch's; the variance here is biased, too (PyTorch's running_var is not).
void batch_statistics(cudaStream_t s, number t, const normalising& n, const void* x, float* running_mean,
                      float* running_variance, float momentum, float* partials);
// Sets mean and inverse from the running statistics, for evaluation.
void running_statistics(cudaStream_t s, const normalising& n, const float* running_mean, const float* running_variance);
// y = relu(scale (x - mean) inverse + bias + residual); the residual may be null, and the ReLU is applied if `relu`.
void normalise(cudaStream_t s, number t, const normalising& n, const void* x, const void* residual, bool relu, void* y);
// The outputs of normalise_gradient(). dx and dresidual may be null. They may be the same memory if add_residual
// is set: the sum of both gradients is then stored there. dscale and dbias are per channel.
struct normalise_gradients {
  void *dx, *dresidual;
  bool add_dx, add_residual;
  float *dscale, *dbias;
  bool add_scale, add_bias;
};
// Computes the gradients of x, the residual, scale and bias, where mean and inverse are of this batch. With `relu`,
// elements with y <= 0 get no gradient; else y is not read.
void normalise_gradient(cudaStream_t s, number t, const normalising& n, const void* x, const void* y, const void* dy,
                        bool relu, const normalise_gradients& g, float* partials);

// Pooling. p: layout of the input; q: layout of the output; w.step is ignored. places, [samples] in layout q: for each
// output the position y * width + x of its maximum in the input's channel; max_pool() writes it, the gradient reads it.
// An average is over the elements of the window inside the image. The gradients are sums in a fixed order.
void max_pool(cudaStream_t s, number t, window w, const picture& p, const picture& q, const void* x, void* y,
              std::int32_t* places, std::size_t samples);
void max_pool_gradient(cudaStream_t s, number t, window w, const picture& p, const picture& q, const void* dy,
                       const std::int32_t* places, void* dx, std::size_t samples, bool add);
void average_pool(cudaStream_t s, number t, window w, const picture& p, const picture& q, const void* x, void* y,
                  std::size_t samples);
void average_pool_gradient(cudaStream_t s, number t, window w, const picture& p, const picture& q, const void* dy,
                           void* dx, std::size_t samples, bool add);

// y = x times the factor of its sample and channel. Factors, of type t, are [samples, channels]. The gradient of x is
// the same function of dy.
void scale_channels(cudaStream_t s, number t, const picture& p, const void* x, const void* factors, void* y,
                    std::size_t samples, bool add);
// The gradient of the factors: the sum of x dy over the positions of each channel of each sample.
void scale_channels_factors(cudaStream_t s, number t, const picture& p, const void* x, const void* dy, void* dfactors,
                            std::size_t samples, bool add);

} // namespace cudnn::kernels
