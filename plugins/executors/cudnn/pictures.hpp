// SPDX-License-Identifier: Apache-2.0
//
// Kernels for images and feature vectors: sums over channels, batch norm, pooling, channel scaling. The conventions of
// maps.hpp hold.
#pragma once

#include "elements.hpp"

#include <cuda_runtime_api.h>

namespace cudnn::kernels {

// Returns the size of `partials` in floats, for sums over channels.
std::size_t partials_of(const picture& p, std::size_t samples);
// out[c] = the sum of the elements of x in channel c, or added to it
void channel_sums(cudaStream_t s, number t, const void* x, const picture& p, std::size_t samples, float* out, bool add,
                  float* partials);

// Batch norm (Ioffe and Szegedy 2015), optionally followed by the addition of a residual and a ReLU.
struct normalising {
  picture p;
  std::size_t samples;
  const float *scale, *bias; // per channel
  float *mean, *inverse;     // per channel, of this batch; inverse = 1 / sqrt(variance + epsilon)
  float epsilon;
};
// Computes mean and inverse of x. Updates the running statistics: r = momentum * r + (1 - momentum) * the batch's.
void batch_statistics(cudaStream_t s, number t, const normalising& n, const void* x, float* running_mean,
                      float* running_variance, float momentum, float* partials);
// Sets mean and inverse from the running statistics.
void running_statistics(cudaStream_t s, const normalising& n, const float* running_mean, const float* running_variance);
// y = relu(scale (x - mean) inverse + bias + residual); the residual may be null, and the ReLU is applied if `relu`.
void normalise(cudaStream_t s, number t, const normalising& n, const void* x, const void* residual, bool relu, void* y);
// dx and dresidual may be null. With `relu`, elements with y <= 0 get no gradient.
struct normalise_gradients {
  void *dx, *dresidual;
  bool add_dx, add_residual;
  float *dscale, *dbias;
  bool add_scale, add_bias;
};
void normalise_gradient(cudaStream_t s, number t, const normalising& n, const void* x, const void* y, const void* dy,
                        bool relu, const normalise_gradients& g, float* partials);

// Pooling. p: layout of the input; q: layout of the output. places: index of each maximum in its channel.
void max_pool(cudaStream_t s, number t, window w, const picture& p, const picture& q, const void* x, void* y,
              std::int32_t* places, std::size_t samples);
void max_pool_gradient(cudaStream_t s, number t, window w, const picture& p, const picture& q, const void* dy,
                       const std::int32_t* places, void* dx, std::size_t samples, bool add);
void average_pool(cudaStream_t s, number t, window w, const picture& p, const picture& q, const void* x, void* y,
                  std::size_t samples);
void average_pool_gradient(cudaStream_t s, number t, window w, const picture& p, const picture& q, const void* dy,
                           void* dx, std::size_t samples, bool add);

// y = x times the factor of its sample and channel; factors are [samples, channels].
void scale_channels(cudaStream_t s, number t, const picture& p, const void* x, const void* factors, void* y,
                    std::size_t samples, bool add);
void scale_channels_factors(cudaStream_t s, number t, const picture& p, const void* x, const void* dy, void* dfactors,
                            std::size_t samples, bool add);

} // namespace cudnn::kernels
