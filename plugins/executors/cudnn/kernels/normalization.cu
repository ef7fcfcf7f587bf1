// SPDX-License-Identifier: Apache-2.0
#include "kernels/normalization.hpp"

#include "kernels/channel_sums.hpp"
#include "kernels/for_elements.hpp"

namespace cudnn::kernels {
namespace {

template <class T> struct plain_sum {
  const T* x;
  REGATTA_DEVICE void operator()(index_t i, index_t, float& a, float&) const { a += to_float(x[i]); }
};

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

template <class T> struct slopes {
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
void statistics_of(cudaStream_t s, normalising n, const T* x, float* running_mean, float* running_variance,
                   float momentum, float* partials) {
  const index_t step = n.p.last ? 1 : n.p.spatial, channels = n.p.channels, chunks = chunks_of(n.p, n.samples);
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

template <class T> void normalise_of(cudaStream_t s, normalising n, const T* x, const T* residual, bool relu, T* y) {
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
void gradient_of(cudaStream_t s, normalising n, const slopes<T>& f, const normalise_gradients& g, T* dx, T* dresidual,
                 float* partials) {
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
  const auto slope = [relu = f.relu] REGATTA_DEVICE(index_t, float x, float y, float dy, const of_channel<5>::value& c,
                                                    float& dxi, float& d) {
    const auto& [mean, inverse, scale, mean_slope, mean_product] = c.of;
    d = relu && !(y > 0) ? 0.0F : dy;
    dxi = scale * inverse * (d - mean_slope - (x - mean) * inverse * mean_product);
  };
  // dx and dresidual may be the same memory, so the order of these operands matters.
  for_elements(s, n.samples * n.p.elements(), slope, in<T>{f.x}, in<T>{f.relu ? f.y : nullptr}, in<T>{f.dy},
               of_channel<5>{n.p, {n.mean, n.inverse, n.scale, means, means + channels}}, out<T>{dx, g.add_dx},
               out<T>{dresidual, g.add_residual});
}

// Returns the index of the first element of a channel of a sample.
REGATTA_DEVICE inline index_t start_of(const picture& p, const place& at) {
  return at.sample * p.channels * p.spatial + (p.last ? at.channel : at.channel * p.spatial);
}

template <class T>
void max_pool_of(cudaStream_t s, window w, picture p, picture q, const T* x, T* y, std::int32_t* places,
                 std::size_t samples) {
  for_each(s, samples * q.elements(), [=] REGATTA_DEVICE(index_t i) {
    const place at = place_of(q, i);
    const int o = static_cast<int>(at.at);
    put(y + i, max_of(x + start_of(p, at), w, o / w.out_width, o % w.out_width, places[i]));
  });
}
template <class T>
void max_gradient_of(cudaStream_t s, window w, picture p, picture q, const T* dy, const std::int32_t* places, T* dx,
                     std::size_t samples, bool add) {
  for_each(s, samples * p.elements(), [=] REGATTA_DEVICE(index_t i) {
    const place at = place_of(p, i);
    const int o = static_cast<int>(at.at);
    const index_t from = start_of(q, at);
    put(dx + i, max_gradient(dy + from, places + from, w, o / w.width, o % w.width), add);
  });
}
template <class T>
void average_of_windows(cudaStream_t s, window w, picture p, picture q, const T* x, T* y, std::size_t samples) {
  for_each(s, samples * q.elements(), [=] REGATTA_DEVICE(index_t i) {
    const place at = place_of(q, i);
    const int o = static_cast<int>(at.at);
    put(y + i, average_of(x + start_of(p, at), w, o / w.out_width, o % w.out_width));
  });
}
template <class T>
void average_gradient_of(cudaStream_t s, window w, picture p, picture q, const T* dy, T* dx, std::size_t samples,
                         bool add) {
  for_each(s, samples * p.elements(), [=] REGATTA_DEVICE(index_t i) {
    const place at = place_of(p, i);
    const int o = static_cast<int>(at.at);
    put(dx + i, average_gradient(dy + start_of(q, at), w, o / w.width, o % w.width), add);
  });
}

template <class T>
void scale_of(cudaStream_t s, picture p, const T* x, const T* factors, T* y, std::size_t samples, bool add) {
  for_each(s, samples * p.elements(), [=] REGATTA_DEVICE(index_t i) {
    const place at = place_of(p, i);
    put(y + i, to_float(x[i]) * to_float(factors[at.sample * p.channels + at.channel]), add);
  });
}
template <class T>
void factors_of(cudaStream_t s, picture p, const T* x, const T* dy, T* dfactors, std::size_t samples, bool add) {
  for_rows(s, samples * p.channels, p.spatial, [=] REGATTA_DEVICE(const block& b, index_t row) {
    const index_t step = p.last ? p.channels : 1, from = start_of(p, {row / p.channels, row % p.channels, 0});
    float sum = 0;
    for (index_t i = b.first(); i < p.spatial; i += b.step())
      sum += to_float(x[from + i * step]) * to_float(dy[from + i * step]);
    sum = b.sum(sum);
    if (b.leads()) put(dfactors + row, sum, add);
  });
}

window stepping(window w, const picture& p) {
  w.step = p.last ? static_cast<int>(p.channels) : 1;
  return w;
}

} // namespace

std::size_t partials_of(const picture& p, std::size_t samples) {
  return (2 * std::size_t{chunks_of(p, samples)} + 2) * p.channels;
}

void channel_sums(cudaStream_t s, number t, const void* x, const picture& p, std::size_t samples, float* out, bool add,
                  float* partials) {
  by_type(t, [&](auto* of) {
    channel_partials(s, p, samples, partials, plain_sum<std::remove_pointer_t<decltype(of)>>{as(of, x)});
  });
  const index_t channels = p.channels, chunks = chunks_of(p, samples);
  for_each(s, channels, [=] REGATTA_DEVICE(index_t c) {
    put(out + c, static_cast<float>(total_of(partials, chunks, channels, 0, c)), add);
  });
}

void batch_statistics(cudaStream_t s, number t, const normalising& n, const void* x, float* running_mean,
                      float* running_variance, float momentum, float* partials) {
  by_type(t, [&](auto* of) { statistics_of(s, n, as(of, x), running_mean, running_variance, momentum, partials); });
}

void running_statistics(cudaStream_t s, const normalising& n, const float* running_mean,
                        const float* running_variance) {
  float *mean = n.mean, *inverse = n.inverse;
  const float epsilon = n.epsilon;
  for_each(s, n.p.channels, [=] REGATTA_DEVICE(index_t c) {
    mean[c] = running_mean[c];
    inverse[c] = 1 / sqrtf(running_variance[c] + epsilon);
  });
}

void normalise(cudaStream_t s, number t, const normalising& n, const void* x, const void* residual, bool relu,
               void* y) {
  by_type(t, [&](auto* of) { normalise_of(s, n, as(of, x), as(of, residual), relu, as(of, y)); });
}

void normalise_gradient(cudaStream_t s, number t, const normalising& n, const void* x, const void* y, const void* dy,
                        bool relu, const normalise_gradients& g, float* partials) {
  by_type(t, [&](auto* of) {
    const slopes<std::remove_pointer_t<decltype(of)>> f{as(of, x), as(of, y), as(of, dy), n.mean, n.inverse, relu};
    gradient_of(s, n, f, g, as(of, g.dx), as(of, g.dresidual), partials);
  });
}

void max_pool(cudaStream_t s, number t, window w, const picture& p, const picture& q, const void* x, void* y,
              std::int32_t* places, std::size_t samples) {
  by_type(t, [&](auto* of) { max_pool_of(s, stepping(w, p), p, q, as(of, x), as(of, y), places, samples); });
}

void max_pool_gradient(cudaStream_t s, number t, window w, const picture& p, const picture& q, const void* dy,
                       const std::int32_t* places, void* dx, std::size_t samples, bool add) {
  by_type(t, [&](auto* of) { max_gradient_of(s, stepping(w, p), p, q, as(of, dy), places, as(of, dx), samples, add); });
}

void average_pool(cudaStream_t s, number t, window w, const picture& p, const picture& q, const void* x, void* y,
                  std::size_t samples) {
  by_type(t, [&](auto* of) { average_of_windows(s, stepping(w, p), p, q, as(of, x), as(of, y), samples); });
}

void average_pool_gradient(cudaStream_t s, number t, window w, const picture& p, const picture& q, const void* dy,
                           void* dx, std::size_t samples, bool add) {
  by_type(t, [&](auto* of) { average_gradient_of(s, stepping(w, p), p, q, as(of, dy), as(of, dx), samples, add); });
}

void scale_channels(cudaStream_t s, number t, const picture& p, const void* x, const void* factors, void* y,
                    std::size_t samples, bool add) {
  by_type(t, [&](auto* of) { scale_of(s, p, as(of, x), as(of, factors), as(of, y), samples, add); });
}

void scale_channels_factors(cudaStream_t s, number t, const picture& p, const void* x, const void* dy, void* dfactors,
                            std::size_t samples, bool add) {
  by_type(t, [&](auto* of) { factors_of(s, p, as(of, x), as(of, dy), as(of, dfactors), samples, add); });
}

} // namespace cudnn::kernels
