// SPDX-License-Identifier: Apache-2.0
//
// What the kernels compute for one element, as functions that run on the host too: tests check them there. What each
// means is said in regatta/layers.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include <regatta/random.hpp>

#ifdef __CUDACC__
#define REGATTA_EVERYWHERE __host__ __device__
#else
#define REGATTA_EVERYWHERE
#endif

namespace cudnn {

// How pooling goes over one channel of one sample.
struct window {
  int height = 1, width = 1, out_height = 1, out_width = 1;
  int kernel_height = 1, kernel_width = 1, stride = 1, padding = 0;
};

// Of one side of a window: from where to where its elements lie inside the picture.
struct extent {
  int begin, end;
};
REGATTA_EVERYWHERE inline extent covered(int out, int kernel, int stride, int padding, int size) {
  const int first = out * stride - padding, last = first + kernel;
  return {first < 0 ? 0 : first, last > size ? size : last};
}
// The other way round: which windows cover element `at`.
REGATTA_EVERYWHERE inline extent covering(int at, int kernel, int stride, int padding, int out_size) {
  const int past = at + padding - kernel; // a window that begins here or before has ended
  const int begin = past < 0 ? 0 : past / stride + 1, end = (at + padding) / stride + 1;
  return {begin, end > out_size ? out_size : end};
}

// The largest element that output (oy, ox) sees, and where it lies; the first of equals.
REGATTA_EVERYWHERE inline float max_of(const float* x, const window& w, int oy, int ox, std::int32_t& place) {
  const extent rows = covered(oy, w.kernel_height, w.stride, w.padding, w.height);
  const extent columns = covered(ox, w.kernel_width, w.stride, w.padding, w.width);
  place = rows.begin * w.width + columns.begin;
  for (int y = rows.begin; y < rows.end; ++y)
    for (int c = columns.begin; c < columns.end; ++c)
      if (x[y * w.width + c] > x[place]) place = y * w.width + c;
  return x[place];
}
// What reaches element (y, c) of the gradient: of the windows that took it.
REGATTA_EVERYWHERE inline float max_gradient(const float* dy, const std::int32_t* places, const window& w, int y,
                                             int c) {
  const extent rows = covering(y, w.kernel_height, w.stride, w.padding, w.out_height);
  const extent columns = covering(c, w.kernel_width, w.stride, w.padding, w.out_width);
  float sum = 0;
  for (int oy = rows.begin; oy < rows.end; ++oy)
    for (int ox = columns.begin; ox < columns.end; ++ox)
      if (places[oy * w.out_width + ox] == y * w.width + c) sum += dy[oy * w.out_width + ox];
  return sum;
}

REGATTA_EVERYWHERE inline float average_of(const float* x, const window& w, int oy, int ox) {
  const extent rows = covered(oy, w.kernel_height, w.stride, w.padding, w.height);
  const extent columns = covered(ox, w.kernel_width, w.stride, w.padding, w.width);
  float sum = 0;
  for (int y = rows.begin; y < rows.end; ++y)
    for (int c = columns.begin; c < columns.end; ++c) sum += x[y * w.width + c];
  return sum / static_cast<float>((rows.end - rows.begin) * (columns.end - columns.begin));
}
REGATTA_EVERYWHERE inline float average_gradient(const float* dy, const window& w, int y, int c) {
  const extent rows = covering(y, w.kernel_height, w.stride, w.padding, w.out_height);
  const extent columns = covering(c, w.kernel_width, w.stride, w.padding, w.out_width);
  float sum = 0;
  for (int oy = rows.begin; oy < rows.end; ++oy)
    for (int ox = columns.begin; ox < columns.end; ++ox) {
      const extent r = covered(oy, w.kernel_height, w.stride, w.padding, w.height);
      const extent k = covered(ox, w.kernel_width, w.stride, w.padding, w.width);
      sum += dy[oy * w.out_width + ox] / static_cast<float>((r.end - r.begin) * (k.end - k.begin));
    }
  return sum;
}

// Whether dropout keeps an element of a sample. `seed`: of the step and layer; `threshold`: round(p * 65536).
REGATTA_EVERYWHERE inline bool keeps(std::uint64_t seed, std::uint64_t sample, std::uint64_t element,
                                     std::uint32_t threshold) {
  const rg::bits4 bits = rg::random_bits(seed, sample, static_cast<std::uint32_t>(element / 8));
  const std::uint32_t word = bits[element % 8 / 2];
  return (element % 2 ? word >> 16 : word & 0xffff) >= threshold;
}

} // namespace cudnn
