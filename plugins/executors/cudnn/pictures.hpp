// SPDX-License-Identifier: Apache-2.0
//
// Kernels for pictures and vectors of features: sums over channels, batch norm, pooling, scaled channels. What is said
// in maps.hpp holds.
#pragma once

#include "elements.hpp"

#include <cuda_runtime_api.h>

namespace cudnn::kernels {

// Room for sums over channels, in floats.
std::size_t partials_of(const picture& p, std::size_t samples);
// out[c] = the sum of x over all but the channels
void channel_sums(cudaStream_t s, number t, const void* x, const picture& p, std::size_t samples, float* out, bool add,
                  float* partials);

// Batch norm (Ioffe and Szegedy 2015), with what may follow it: a residual that is added, and a ReLU.
struct normalising {
  picture p;
  std::size_t samples;
  const float *scale, *bias; // of the channels
  float *mean, *inverse;     // of this batch: 1 / sqrt(variance + epsilon)
  float epsilon;
};
// mean and inverse of x; the running statistics become momentum * themselves + (1 - momentum) * the batch's.
void batch_statistics(cudaStream_t s, number t, const normalising& n, const void* x, float* running_mean,
                      float* running_variance, float momentum, float* partials);
// mean and inverse of the running statistics.
void running_statistics(cudaStream_t s, const normalising& n, const float* running_mean, const float* running_variance);
// y = scale (x - mean) inverse + bias, plus the residual where there is one, then ReLU where asked for.
void normalise(cudaStream_t s, number t, const normalising& n, const void* x, const void* residual, bool relu, void* y);
// Where a ReLU followed, y says where it let pass. dx and dresidual may be null.
struct normalise_gradients {
  void *dx, *dresidual;
  bool add_dx, add_residual;
  float *dscale, *dbias;
  bool add_scale, add_bias;
};
void normalise_gradient(cudaStream_t s, number t, const normalising& n, const void* x, const void* y, const void* dy,
                        bool relu, const normalise_gradients& g, float* partials);

// `p` and `q`: what goes in, and what comes out.
void max_pool(cudaStream_t s, number t, window w, const picture& p, const picture& q, const void* x, void* y,
              std::int32_t* places, std::size_t samples);
void max_pool_gradient(cudaStream_t s, number t, window w, const picture& p, const picture& q, const void* dy,
                       const std::int32_t* places, void* dx, std::size_t samples, bool add);
void average_pool(cudaStream_t s, number t, window w, const picture& p, const picture& q, const void* x, void* y,
                  std::size_t samples);
void average_pool_gradient(cudaStream_t s, number t, window w, const picture& p, const picture& q, const void* dy,
                           void* dx, std::size_t samples, bool add);

// y = x times the factor of its sample's channel, [samples, channels].
void scale_channels(cudaStream_t s, number t, const picture& p, const void* x, const void* factors, void* y,
                    std::size_t samples, bool add);
void scale_channels_factors(cudaStream_t s, number t, const picture& p, const void* x, const void* dy, void* dfactors,
                            std::size_t samples, bool add);

} // namespace cudnn::kernels
