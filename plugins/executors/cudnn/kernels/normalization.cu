// SPDX-License-Identifier: Apache-2.0
#include "kernels/normalization.hpp"

#include "kernels/channel_partials.hpp"
#include "kernels/for_elements.hpp"

namespace cudnn::kernels {
namespace {

// Sums of d and d^2, where d is the distance to the channel's first element: a mean far from zero then costs no digits.
template <class T> struct moments {
  const T* x;
  index_t step; // from the first element of a channel to that of the next
  REGATTA_DEVICE void operator()(index_t i, index_t c, float& a, float& b) const {
    const float d = to_float(x[i]) - to_float(x[c * step]);
    a += d;
    b += d * d;
  }
};

template <class T> struct scale_bias_sums {
  const T *x, *y, *dy;
  const float *mean, *inverse;
  bool relu;
  REGATTA_DEVICE void operator()(index_t i, index_t c, float& a, float& b) const {
    const float g = relu && !(to_float(y[i]) > 0) ? 0.0F : to_float(dy[i]);
    a += g;
    b += g * (to_float(x[i]) - mean[c]) * inverse[c];
  }
};

template <class T>
void statistics_of(cudaStream_t s, batch_norm_args n, const T* x, float* running_mean, float* running_variance,
                   float momentum, float* partials) {
  const index_t step = n.p.channels_last ? 1 : n.p.spatial, channels = n.p.channels, chunks = chunks_of(n.p, n.samples);
  channel_partials(s, n.p, n.samples, partials, moments<T>{x, step});
  const double count = static_cast<double>(n.samples) * n.p.spatial;
  for_each(s, channels, [=] REGATTA_DEVICE(index_t c) {
    const double a = total_of(partials, chunks, channels, 0, c) / count;
    const double b = total_of(partials, chunks, channels, 1, c) / count;
    const double mean = a + static_cast<double>(to_float(x[c * step]));
    const double variance = b - a * a > 0 ? b - a * a : (b != b ? b : 0.0); // NaN stays NaN
    n.mean[c] = static_cast<float>(mean);
    n.inverse[c] = static_cast<float>(1 / sqrt(variance + static_cast<double>(n.epsilon)));
    running_mean[c] = momentum * running_mean[c] + (1 - momentum) * static_cast<float>(mean);
    running_variance[c] = momentum * running_variance[c] + (1 - momentum) * static_cast<float>(variance);
  });
}

template <class T>
void batch_norm_of(cudaStream_t s, batch_norm_args n, const T* x, const T* residual, bool relu, T* y) {
  const bool add = residual != nullptr;
  const auto f = [add, relu] REGATTA_DEVICE(index_t, float xi, float more, const of_channel<4>::value& c, float& yi) {
    const auto& [mean, inverse, scale, bias] = c.of;
    float v = (xi - mean) * inverse * scale + bias;
    if (add) v += more;
    yi = relu ? value_of<function::relu>(v) : v;
  };
  for_elements(s, n.samples * n.p.elements(), f, in<T>{x}, in<T>{residual},
               of_channel<4>{n.p, {n.mean, n.inverse, n.scale, n.bias}}, out<T>{y});
}

template <class T>
void gradient_of(cudaStream_t s, batch_norm_args n, const scale_bias_sums<T>& f, const batch_norm_gradients& g, T* dx,
                 T* dresidual, float* partials) {
  const index_t channels = n.p.channels, chunks = chunks_of(n.p, n.samples);
  channel_partials(s, n.p, n.samples, partials, f);
  float* means = partials + 2 * std::size_t{chunks} * channels;
  const double count = static_cast<double>(n.samples) * n.p.spatial;
  for_each(s, channels, [=] REGATTA_DEVICE(index_t c) {
    const double a = total_of(partials, chunks, channels, 0, c), b = total_of(partials, chunks, channels, 1, c);
    put(g.dbias + c, static_cast<float>(a), g.add_bias);
    put(g.dscale + c, static_cast<float>(b), g.add_scale);
    means[c] = static_cast<float>(a / count);
    means[channels + c] = static_cast<float>(b / count);
  });
  const auto gradient = [relu = f.relu] REGATTA_DEVICE(index_t, float x, float y, float dy,
                                                       const of_channel<5>::value& c, float& dxi, float& d) {
    const auto& [mean, inverse, scale, mean_gradient, mean_dot] = c.of;
    d = relu && !(y > 0) ? 0.0F : dy;
    dxi = scale * inverse * (d - mean_gradient - (x - mean) * inverse * mean_dot);
  };
  // dx and dresidual may be the same memory, so the order of these operands matters.
  for_elements(s, n.samples * n.p.elements(), gradient, in<T>{f.x}, in<T>{f.relu ? f.y : nullptr}, in<T>{f.dy},
               of_channel<5>{n.p, {n.mean, n.inverse, n.scale, means, means + channels}}, out<T>{dx, g.add_dx},
               out<T>{dresidual, g.add_residual});
}

template <class T> void layer_norm_of(cudaStream_t s, layer_norm_args n, const T* x, T* y) {
  for_rows(s, n.rows, n.size, [=] REGATTA_DEVICE(const block& b, index_t r) {
    const T* in = x + std::size_t{r} * n.size;
    float sum = 0;
    for (index_t i = b.first(); i < n.size; i += b.step()) sum += to_float(in[i]);
    const float mean = b.sum(sum) / static_cast<float>(n.size);
    float square = 0;
    for (index_t i = b.first(); i < n.size; i += b.step()) {
      const float d = to_float(in[i]) - mean;
      square += d * d;
    }
    const float inverse = 1 / sqrtf(b.sum(square) / static_cast<float>(n.size) + n.epsilon);
    for (index_t i = b.first(); i < n.size; i += b.step())
      put(y + std::size_t{r} * n.size + i, (to_float(in[i]) - mean) * inverse * n.scale[i] + n.bias[i]);
    if (!b.leads()) return;
    n.mean[r] = mean;
    n.inverse[r] = inverse;
  });
}

template <class T> void layer_norm_dx(cudaStream_t s, layer_norm_args n, const T* x, const T* dy, T* dx, bool add) {
  for_rows(s, n.rows, n.size, [=] REGATTA_DEVICE(const block& b, index_t r) {
    const std::size_t at = std::size_t{r} * n.size;
    const float mean = n.mean[r], inverse = n.inverse[r];
    float sum = 0, dot = 0;
    for (index_t i = b.first(); i < n.size; i += b.step()) {
      const float g = to_float(dy[at + i]) * n.scale[i];
      sum += g;
      dot += g * (to_float(x[at + i]) - mean) * inverse;
    }
    sum = b.sum(sum) / static_cast<float>(n.size);
    dot = b.sum(dot) / static_cast<float>(n.size);
    for (index_t i = b.first(); i < n.size; i += b.step()) {
      const float normal = (to_float(x[at + i]) - mean) * inverse;
      put(dx + at + i, (to_float(dy[at + i]) * n.scale[i] - sum - normal * dot) * inverse, add);
    }
  });
}

// Gradients of bias and scale per feature: a feature is a channel in rows that are channels-last.
template <class T> struct scale_bias_gradient {
  const T *x, *dy;
  const float *mean, *inverse;
  index_t size;
  REGATTA_DEVICE void operator()(index_t i, index_t, float& a, float& b) const {
    const float g = to_float(dy[i]);
    a += g;
    b += g * (to_float(x[i]) - mean[i / size]) * inverse[i / size];
  }
};

image_layout features_of(std::uint32_t size) {
  return {.channels = size, .spatial = 1, .channels_last = true};
}

} // namespace

void batch_statistics(cudaStream_t s, dtype t, const batch_norm_args& n, const void* x, float* running_mean,
                      float* running_variance, float momentum, float* partials) {
  by_type(t, [&](auto* of) { statistics_of(s, n, as(of, x), running_mean, running_variance, momentum, partials); });
}

void running_statistics(cudaStream_t s, const batch_norm_args& n, const float* running_mean,
                        const float* running_variance) {
  float *mean = n.mean, *inverse = n.inverse;
  const float epsilon = n.epsilon;
  for_each(s, n.p.channels, [=] REGATTA_DEVICE(index_t c) {
    mean[c] = running_mean[c];
    inverse[c] = 1 / sqrtf(running_variance[c] + epsilon);
  });
}

void batch_norm(cudaStream_t s, dtype t, const batch_norm_args& n, const void* x, const void* residual, bool relu,
                void* y) {
  by_type(t, [&](auto* of) { batch_norm_of(s, n, as(of, x), as(of, residual), relu, as(of, y)); });
}

void batch_norm_gradient(cudaStream_t s, dtype t, const batch_norm_args& n, const void* x, const void* y,
                         const void* dy, bool relu, const batch_norm_gradients& g, float* partials) {
  by_type(t, [&](auto* of) {
    const scale_bias_sums<std::remove_pointer_t<decltype(of)>> f{as(of, x), as(of, y), as(of, dy),
                                                                 n.mean,    n.inverse, relu};
    gradient_of(s, n, f, g, as(of, g.dx), as(of, g.dresidual), partials);
  });
}

void layer_norm(cudaStream_t s, dtype t, const layer_norm_args& n, const void* x, void* y) {
  by_type(t, [&](auto* of) { layer_norm_of(s, n, as(of, x), as(of, y)); });
}

std::size_t layer_norm_partials(std::size_t rows, std::uint32_t size) {
  return 2 * std::size_t{chunks_of(features_of(size), rows)} * size;
}

void layer_norm_gradient(cudaStream_t s, dtype t, const layer_norm_args& n, const void* x, const void* dy,
                         const layer_norm_gradients& g, float* partials) {
  const image_layout p = features_of(n.size);
  by_type(t, [&](auto* of) {
    channel_partials(
        s, p, n.rows, partials,
        scale_bias_gradient<std::remove_pointer_t<decltype(of)>>{as(of, x), as(of, dy), n.mean, n.inverse, n.size});
    if (g.dx) layer_norm_dx(s, n, as(of, x), as(of, dy), as(of, g.dx), g.add_dx);
  });
  const index_t chunks = chunks_of(p, n.rows), size = n.size;
  for_each(s, size, [=] REGATTA_DEVICE(index_t c) {
    put(g.dbias + c, static_cast<float>(total_of(partials, chunks, size, 0, c)), g.add_bias);
    put(g.dscale + c, static_cast<float>(total_of(partials, chunks, size, 1, c)), g.add_scale);
  });
}

} // namespace cudnn::kernels
