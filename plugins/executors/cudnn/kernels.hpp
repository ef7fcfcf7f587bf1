// SPDX-License-Identifier: Apache-2.0
//
// Our own kernels: what neither cuDNN nor cuBLAS has, or has otherwise than regatta/layers.hpp says. All are in the
// stream's order and return at once; pointers are the device's. Where `add` is said, the result is added to what is
// there, else it overwrites it. Sums do not depend on timing. A launch that fails is seen by device::check_launch().
#pragma once

#include "elements.hpp"

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace cudnn::kernels {

void relu(cudaStream_t s, const float* x, float* y, std::size_t n);
void relu_gradient(cudaStream_t s, const float* y, const float* dy, float* dx, std::size_t n, bool add);
// y = a + b
void sum(cudaStream_t s, const float* a, const float* b, float* y, std::size_t n);
// y = x or y += x
void copy(cudaStream_t s, const float* x, float* y, std::size_t n, bool add);

// x is [outer, channels, inner]: x += bias of its channel.
void add_bias(cudaStream_t s, float* x, const float* bias, std::size_t outer, std::size_t channels, std::size_t inner);
// out[c] = the sum of x over all but the channels
void channel_sums(cudaStream_t s, const float* x, float* out, std::size_t outer, std::size_t channels,
                  std::size_t inner, bool add);

// Of `samples` samples of n elements, the first of which is number `first` of the global batch. Forward: y of x,
// backward: dx of dy.
struct dropping {
  std::uint64_t seed, first;
  std::uint32_t threshold;
  float scale;
};
void dropout(cudaStream_t s, const dropping& d, const float* x, float* y, std::size_t samples, std::size_t n, bool add);

// Over `planes` channels of samples.
void max_pool(cudaStream_t s, const window& w, const float* x, float* y, std::int32_t* places, std::size_t planes);
void max_pool_gradient(cudaStream_t s, const window& w, const float* dy, const std::int32_t* places, float* dx,
                       std::size_t planes, bool add);
void average_pool(cudaStream_t s, const window& w, const float* x, float* y, std::size_t planes);
void average_pool_gradient(cudaStream_t s, const window& w, const float* dy, float* dx, std::size_t planes, bool add);

// Running statistics: state = momentum * state + (1 - momentum) * batch's, whose variance is 1 / inverse^2 - epsilon.
void running_statistics(cudaStream_t s, float* mean, float* variance, const float* batch_mean, const float* inverse,
                        float momentum, float epsilon, std::size_t channels);

// probabilities = softmax(logits); losses[i] = -log of the label's; right[i] = 1 where the label's logit is the first of
// the largest. A label out of range has loss 0.
void cross_entropy(cudaStream_t s, const float* logits, const std::int32_t* labels, float* probabilities,
                   double* losses, std::int32_t* right, std::size_t samples, std::size_t classes);
// dx = (probabilities - one at the label) * share
void cross_entropy_gradient(cudaStream_t s, const float* probabilities, const std::int32_t* labels, float share,
                            float* dx, std::size_t samples, std::size_t classes, bool add);

} // namespace cudnn::kernels
