// SPDX-License-Identifier: Apache-2.0
#include "kernels.hpp"

#include <math_constants.h>

namespace cudnn::kernels {
namespace {

constexpr int threads = 256; // of every block; a power of two, for the reductions

// Blocks for a loop over n elements in which a thread takes every (grid)-th.
unsigned blocks(std::size_t n) {
  const std::size_t wanted = (n + threads - 1) / threads;
  return static_cast<unsigned>(wanted < 1 ? 1 : wanted > 65535 ? 65535 : wanted);
}

__device__ std::size_t first() {
  return static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ std::size_t stride() {
  return static_cast<std::size_t>(gridDim.x) * blockDim.x;
}
__device__ void put(float* at, float value, bool add) {
  *at = add ? *at + value : value;
}

// Calls f(i) for every i below n.
template <class F> __global__ void loop(std::size_t n, F f) {
  for (std::size_t i = first(); i < n; i += stride()) f(i);
}
template <class F> void for_each(cudaStream_t s, std::size_t n, F f) {
  if (n) loop<<<blocks(n), threads, 0, s>>>(n, f);
}

// The sum over a block's threads, in an order that never changes; all threads get it.
template <class T> __device__ T block_sum(T mine) {
  __shared__ T parts[threads];
  parts[threadIdx.x] = mine;
  __syncthreads();
  for (int half = threads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    __syncthreads();
  }
  const T all = parts[0];
  __syncthreads(); // `parts` may be used again
  return all;
}

__global__ void sum_channels(const float* x, float* out, std::size_t outer, std::size_t channels, std::size_t inner,
                             bool add) {
  for (std::size_t c = blockIdx.x; c < channels; c += gridDim.x) {
    float mine = 0;
    for (std::size_t i = threadIdx.x; i < outer * inner; i += threads)
      mine += x[(i / inner * channels + c) * inner + i % inner];
    const float all = block_sum(mine);
    if (threadIdx.x == 0) put(out + c, all, add);
  }
}

__global__ void softmax_loss(const float* logits, const std::int32_t* labels, float* probabilities, double* losses,
                             std::int32_t* right, std::size_t samples, std::size_t classes) {
  __shared__ float best[threads];
  __shared__ std::size_t where[threads];
  for (std::size_t s = blockIdx.x; s < samples; s += gridDim.x) {
    const float* x = logits + s * classes;
    float* p = probabilities + s * classes;
    float most = -CUDART_INF_F;
    std::size_t place = classes; // behind all: no element seen yet
    for (std::size_t c = threadIdx.x; c < classes; c += threads)
      if (place == classes || x[c] > most) {
        most = x[c];
        place = c;
      }
    best[threadIdx.x] = most;
    where[threadIdx.x] = place;
    __syncthreads();
    for (int half = threads / 2; half > 0; half /= 2) {
      if (threadIdx.x < half) {
        const int other = threadIdx.x + half;
        if (best[other] > best[threadIdx.x] ||
            (best[other] == best[threadIdx.x] && where[other] < where[threadIdx.x])) {
          best[threadIdx.x] = best[other];
          where[threadIdx.x] = where[other];
        }
      }
      __syncthreads();
    }
    most = best[0];
    place = where[0];
    __syncthreads();
    double mine = 0;
    for (std::size_t c = threadIdx.x; c < classes; c += threads) {
      p[c] = expf(x[c] - most);
      mine += p[c];
    }
    const double all = block_sum(mine);
    const float inverse = static_cast<float>(1 / all);
    for (std::size_t c = threadIdx.x; c < classes; c += threads) p[c] *= inverse;
    if (threadIdx.x == 0) {
      const std::int32_t label = labels[s];
      const bool inside = label >= 0 && static_cast<std::size_t>(label) < classes;
      losses[s] = inside ? log(all) - (x[label] - most) : 0.0;
      right[s] = inside && place == static_cast<std::size_t>(label) ? 1 : 0;
    }
  }
}

} // namespace

void relu(cudaStream_t s, const float* x, float* y, std::size_t n) {
  for_each(s, n, [=] __device__(std::size_t i) { y[i] = x[i] < 0 ? 0 : x[i]; }); // not-a-number stays
}

void relu_gradient(cudaStream_t s, const float* y, const float* dy, float* dx, std::size_t n, bool add) {
  for_each(s, n, [=] __device__(std::size_t i) { put(dx + i, y[i] > 0 ? dy[i] : 0, add); });
}

void sum(cudaStream_t s, const float* a, const float* b, float* y, std::size_t n) {
  for_each(s, n, [=] __device__(std::size_t i) { y[i] = a[i] + b[i]; });
}

void copy(cudaStream_t s, const float* x, float* y, std::size_t n, bool add) {
  for_each(s, n, [=] __device__(std::size_t i) { put(y + i, x[i], add); });
}

void add_bias(cudaStream_t s, float* x, const float* bias, std::size_t outer, std::size_t channels, std::size_t inner) {
  for_each(s, outer * channels * inner, [=] __device__(std::size_t i) { x[i] += bias[i / inner % channels]; });
}

void channel_sums(cudaStream_t s, const float* x, float* out, std::size_t outer, std::size_t channels,
                  std::size_t inner, bool add) {
  sum_channels<<<static_cast<unsigned>(channels < 65535 ? channels : 65535), threads, 0, s>>>(x, out, outer, channels,
                                                                                              inner, add);
}

void dropout(cudaStream_t s, const dropping& d, const float* x, float* y, std::size_t samples, std::size_t n,
             bool add) {
  for_each(s, samples * n, [=] __device__(std::size_t i) {
    put(y + i, keeps(d.seed, d.first + i / n, i % n, d.threshold) ? x[i] * d.scale : 0, add);
  });
}

void max_pool(cudaStream_t s, const window& w, const float* x, float* y, std::int32_t* places, std::size_t planes) {
  const std::size_t in = static_cast<std::size_t>(w.height) * w.width;
  const std::size_t out = static_cast<std::size_t>(w.out_height) * w.out_width;
  for_each(s, planes * out, [=] __device__(std::size_t i) {
    const int at = static_cast<int>(i % out);
    y[i] = max_of(x + i / out * in, w, at / w.out_width, at % w.out_width, places[i]);
  });
}

void max_pool_gradient(cudaStream_t s, const window& w, const float* dy, const std::int32_t* places, float* dx,
                       std::size_t planes, bool add) {
  const std::size_t in = static_cast<std::size_t>(w.height) * w.width;
  const std::size_t out = static_cast<std::size_t>(w.out_height) * w.out_width;
  for_each(s, planes * in, [=] __device__(std::size_t i) {
    const std::size_t plane = i / in * out;
    const int at = static_cast<int>(i % in);
    put(dx + i, max_gradient(dy + plane, places + plane, w, at / w.width, at % w.width), add);
  });
}

void average_pool(cudaStream_t s, const window& w, const float* x, float* y, std::size_t planes) {
  const std::size_t in = static_cast<std::size_t>(w.height) * w.width;
  const std::size_t out = static_cast<std::size_t>(w.out_height) * w.out_width;
  for_each(s, planes * out, [=] __device__(std::size_t i) {
    const int at = static_cast<int>(i % out);
    y[i] = average_of(x + i / out * in, w, at / w.out_width, at % w.out_width);
  });
}

void average_pool_gradient(cudaStream_t s, const window& w, const float* dy, float* dx, std::size_t planes, bool add) {
  const std::size_t in = static_cast<std::size_t>(w.height) * w.width;
  const std::size_t out = static_cast<std::size_t>(w.out_height) * w.out_width;
  for_each(s, planes * in, [=] __device__(std::size_t i) {
    const int at = static_cast<int>(i % in);
    put(dx + i, average_gradient(dy + i / in * out, w, at / w.width, at % w.width), add);
  });
}

void running_statistics(cudaStream_t s, float* mean, float* variance, const float* batch_mean, const float* inverse,
                        float momentum, float epsilon, std::size_t channels) {
  for_each(s, channels, [=] __device__(std::size_t c) {
    mean[c] = momentum * mean[c] + (1 - momentum) * batch_mean[c];
    variance[c] = momentum * variance[c] + (1 - momentum) * (1 / (inverse[c] * inverse[c]) - epsilon);
  });
}

void cross_entropy(cudaStream_t s, const float* logits, const std::int32_t* labels, float* probabilities,
                   double* losses, std::int32_t* right, std::size_t samples, std::size_t classes) {
  softmax_loss<<<static_cast<unsigned>(samples < 65535 ? samples : 65535), threads, 0, s>>>(
      logits, labels, probabilities, losses, right, samples, classes);
}

void cross_entropy_gradient(cudaStream_t s, const float* probabilities, const std::int32_t* labels, float share,
                            float* dx, std::size_t samples, std::size_t classes, bool add) {
  for_each(s, samples * classes, [=] __device__(std::size_t i) {
    const bool is_label = static_cast<std::int64_t>(i % classes) == labels[i / classes];
    put(dx + i, (probabilities[i] - (is_label ? 1.0F : 0.0F)) * share, add);
  });
}

} // namespace cudnn::kernels
