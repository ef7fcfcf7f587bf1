// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of kernels for one element, as functions that also run on the host, where tests check them. The ops
// are defined in regatta/layers.hpp.
#pragma once

#include "kernels/dtype.hpp"

#include <regatta/random.hpp>

namespace cudnn {

// Elementwise functions; gelu is the exact one (erf), not the approximation by tanh.
enum class function : std::uint8_t { relu, gelu, tanh, sigmoid, softsign };

template <function F> REGATTA_EVERYWHERE inline float value_of(float x) {
  if constexpr (F == function::relu) return x < 0 ? 0 : x; // NaN stays NaN
  if constexpr (F == function::gelu) return 0.5F * x * erfcf(-0.70710678F * x);
  if constexpr (F == function::tanh) return tanhf(x);
  if constexpr (F == function::sigmoid) return 1 / (1 + expf(-x));
  if constexpr (F == function::softsign) return x / (1 + fabsf(x));
}
// Returns the derivative at x; y is the function's value at x. relu, tanh and sigmoid use y only, gelu and softsign x
// only.
template <function F> REGATTA_EVERYWHERE inline float slope_of(float x, float y) {
  if constexpr (F == function::relu) return y > 0 ? 1.0F : 0.0F;
  if constexpr (F == function::gelu) return 0.5F * erfcf(-0.70710678F * x) + x * 0.39894228F * expf(-0.5F * x * x);
  if constexpr (F == function::tanh) return 1 - y * y;
  if constexpr (F == function::sigmoid) return y * (1 - y);
  if constexpr (F == function::softsign) return 1 / ((1 + fabsf(x)) * (1 + fabsf(x)));
}

// The layout of a sample with channels: NCHW, or with `last` NHWC. `spatial` is height times width; the elements of a
// channel are numbered y * width + x. By default a single element.
struct picture {
  std::uint32_t channels = 1, spatial = 1;
  bool last = false;
  std::size_t elements() const { return std::size_t{channels} * spatial; }
};
struct place {
  std::uint32_t sample, channel, at; // at: number of the element in its channel
};
// place_of() returns where element i of a batch in layout p is; offset_of() is its inverse.
REGATTA_EVERYWHERE inline place place_of(const picture& p, std::uint32_t i) {
  const std::uint32_t size = p.channels * p.spatial, in = i % size;
  if (p.last) return {i / size, in % p.channels, in / p.channels};
  return {i / size, in / p.spatial, in % p.spatial};
}
REGATTA_EVERYWHERE inline std::uint32_t offset_of(const picture& p, const place& at) {
  const std::uint32_t in = p.last ? at.at * p.channels + at.channel : at.channel * p.spatial + at.at;
  return at.sample * p.channels * p.spatial + in;
}

// The geometry of pooling over one channel of one sample. Every window must overlap the image. The functions below get
// the address of the channel's first element.
struct window {
  int height = 1, width = 1, out_height = 1, out_width = 1; // of the image; of the output
  int kernel_height = 1, kernel_width = 1, stride = 1, padding = 0;
  int step = 1; // elements from one position of a channel to the next; the kernels of pictures.hpp set it
};

// A range of rows or columns, without `end`.
struct extent {
  int begin, end;
};
// Returns the rows (or columns) of the image that row (or column) `out` of windows covers; `size`: rows of the image.
REGATTA_EVERYWHERE inline extent covered(int out, int kernel, int stride, int padding, int size) {
  const int first = out * stride - padding, last = first + kernel;
  return {first < 0 ? 0 : first, last > size ? size : last};
}
// Returns the rows (or columns) of windows that cover row (or column) `at` of the image.
REGATTA_EVERYWHERE inline extent covering(int at, int kernel, int stride, int padding, int out_size) {
  const int past = at + padding - kernel; // a window that begins here or earlier ends before `at`
  const int begin = past < 0 ? 0 : past / stride + 1, end = (at + padding) / stride + 1;
  return {begin, end > out_size ? out_size : end};
}

// Returns the largest element in the window of output (oy, ox) and sets `place` to its number y * width + x in the
// channel, the first of equals. NaN is returned only if it is the first element of the window.
template <class T>
REGATTA_EVERYWHERE inline float max_of(const T* x, const window& w, int oy, int ox, std::int32_t& place) {
  const extent rows = covered(oy, w.kernel_height, w.stride, w.padding, w.height);
  const extent columns = covered(ox, w.kernel_width, w.stride, w.padding, w.width);
  place = rows.begin * w.width + columns.begin;
  for (int y = rows.begin; y < rows.end; ++y)
    for (int c = columns.begin; c < columns.end; ++c)
      if (to_float(x[(y * w.width + c) * w.step]) > to_float(x[place * w.step])) place = y * w.width + c;
  return to_float(x[place * w.step]);
}
// Returns the gradient of input element (y, c): the sum of dy over the windows whose maximum it is. dy and `places`, as
// set by max_of(), are those of the channel's outputs.
template <class T>
REGATTA_EVERYWHERE inline float max_gradient(const T* dy, const std::int32_t* places, const window& w, int y, int c) {
  const extent rows = covering(y, w.kernel_height, w.stride, w.padding, w.out_height);
  const extent columns = covering(c, w.kernel_width, w.stride, w.padding, w.out_width);
  float sum = 0;
  for (int oy = rows.begin; oy < rows.end; ++oy)
    for (int ox = columns.begin; ox < columns.end; ++ox)
      if (const int o = (oy * w.out_width + ox) * w.step; places[o] == y * w.width + c) sum += to_float(dy[o]);
  return sum;
}

// Returns the mean of the elements of the window of output (oy, ox) that are inside the image.
template <class T> REGATTA_EVERYWHERE inline float average_of(const T* x, const window& w, int oy, int ox) {
  const extent rows = covered(oy, w.kernel_height, w.stride, w.padding, w.height);
  const extent columns = covered(ox, w.kernel_width, w.stride, w.padding, w.width);
  float sum = 0;
  for (int y = rows.begin; y < rows.end; ++y)
    for (int c = columns.begin; c < columns.end; ++c) sum += to_float(x[(y * w.width + c) * w.step]);
  return sum / static_cast<float>((rows.end - rows.begin) * (columns.end - columns.begin));
}
// Returns the gradient of input element (y, c) from dy, the gradients of the averages.
template <class T> REGATTA_EVERYWHERE inline float average_gradient(const T* dy, const window& w, int y, int c) {
  const extent rows = covering(y, w.kernel_height, w.stride, w.padding, w.out_height);
  const extent columns = covering(c, w.kernel_width, w.stride, w.padding, w.out_width);
  float sum = 0;
  for (int oy = rows.begin; oy < rows.end; ++oy)
    for (int ox = columns.begin; ox < columns.end; ++ox) {
      const extent r = covered(oy, w.kernel_height, w.stride, w.padding, w.height);
      const extent k = covered(ox, w.kernel_width, w.stride, w.padding, w.width);
      sum += to_float(dy[(oy * w.out_width + ox) * w.step]) / static_cast<float>((r.end - r.begin) * (k.end - k.begin));
    }
  return sum;
}

// Returns the random bits that decide on an element. `seed`: of the step and layer. `sample`: its number in the global
// batch. `element`: its number in the sample in canonical layout; elements 8 k to 8 k + 7 share a block of bits.
REGATTA_EVERYWHERE inline rg::bits4 dropout_bits(std::uint64_t seed, std::uint64_t sample, std::uint64_t element) {
  return rg::random_bits(seed, sample, static_cast<std::uint32_t>(element / 8));
}
// Returns whether dropout keeps an element. `bits`: its dropout_bits(). `threshold`: round(p * 65536).
REGATTA_EVERYWHERE inline bool keeps(const rg::bits4& bits, std::uint64_t element, std::uint32_t threshold) {
  const std::uint32_t word = bits[element % 8 / 2];
  return (element % 2 ? word >> 16 : word & 0xffff) >= threshold;
}
REGATTA_EVERYWHERE inline bool keeps(std::uint64_t seed, std::uint64_t sample, std::uint64_t element,
                                     std::uint32_t threshold) {
  return keeps(dropout_bits(seed, sample, element), element, threshold);
}

} // namespace cudnn
