// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of pooling for one element, as functions that also run on the host, where tests check them.
#pragma once

#include "kernels/dtype.hpp"

namespace cudnn {

// The geometry of pooling over one channel of one sample. Every window must overlap the image. The functions below get
// the address of the channel's first element.
struct window {
  int height = 1, width = 1, out_height = 1, out_width = 1; // of the image; of the output
  int kernel_height = 1, kernel_width = 1, stride = 1, padding = 0;
  // Elements from one position of a channel to the next, in x, dy and `positions` alike; the kernels of pooling.hpp set
  // it. The values in `positions` do not include it.
  int step = 1;
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

// Returns the largest element in the window of output (oy, ox) and sets `position` to its number y * width + x in the
// channel, the first of equals. The first NaN in the window counts as the largest.
template <class T>
REGATTA_EVERYWHERE inline float max_of(const T* x, const window& w, int oy, int ox, std::int32_t& position) {
  const extent rows = covered(oy, w.kernel_height, w.stride, w.padding, w.height);
  const extent columns = covered(ox, w.kernel_width, w.stride, w.padding, w.width);
  position = rows.begin * w.width + columns.begin;
  for (int y = rows.begin; y < rows.end; ++y)
    for (int c = columns.begin; c < columns.end; ++c) {
      const float largest = to_float(x[position * w.step]), other = to_float(x[(y * w.width + c) * w.step]);
      if (other > largest || (other != other && largest == largest)) position = y * w.width + c;
    }
  return to_float(x[position * w.step]);
}
// Returns the gradient of input element (y, c): the sum of dy over the windows whose maximum it is. dy and `positions`,
// as set by max_of(), are those of the channel's outputs.
template <class T>
REGATTA_EVERYWHERE inline float max_gradient(const T* dy, const std::int32_t* positions, const window& w, int y,
                                             int c) {
  const extent rows = covering(y, w.kernel_height, w.stride, w.padding, w.out_height);
  const extent columns = covering(c, w.kernel_width, w.stride, w.padding, w.out_width);
  float sum = 0;
  for (int oy = rows.begin; oy < rows.end; ++oy)
    for (int ox = columns.begin; ox < columns.end; ++ox)
      if (const int o = (oy * w.out_width + ox) * w.step; positions[o] == y * w.width + c) sum += to_float(dy[o]);
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

} // namespace cudnn
