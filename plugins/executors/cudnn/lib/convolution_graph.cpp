// SPDX-License-Identifier: Apache-2.0
#include "lib/convolution_graph.hpp"

namespace cudnn {
namespace {

graph::sizes strides_of(const graph::sizes& s, bool last) {
  if (last) return {s[1] * s[2] * s[3], 1, s[1] * s[3], s[1]};
  return {s[1] * s[2] * s[3], s[2] * s[3], s[3], 1};
}

} // namespace

graph convolution_graph::of(const convolution_shape& s, direction made, bool add, const convolution_end& end) {
  const graph::sizes taken = {s.samples, s.in_channels, s.in_height, s.in_width};
  const graph::sizes given = {s.samples, s.out_channels, s.out_height, s.out_width};
  const graph::sizes filters = {s.out_channels, s.in_channels, s.kernel, s.kernel};
  const cudnnDataType_t type = dnn_type(s.type);
  graph g;
  for (const graph::sizes& all : {taken, filters, given}) g.memory(type, all, strides_of(all, s.last));
  if (!end.bias && !end.relu) {
    g.convolve(made, x, filter, y, {s.stride, s.padding}, add);
    return g;
  }
  const auto between = [&] { return g.between(CUDNN_DATA_FLOAT, given, strides_of(given, s.last)); };
  const graph::sizes channels = {1, s.out_channels, 1, 1};
  if (end.bias) g.memory(CUDNN_DATA_FLOAT, channels, strides_of(channels, false));
  graph::tensor latest = between();
  g.convolve(made, x, filter, latest, {s.stride, s.padding}, false);
  if (end.bias) {
    const graph::tensor sum = end.relu ? between() : graph::tensor{y};
    g.map(CUDNN_POINTWISE_ADD, {latest, bias}, sum);
    latest = sum;
  }
  if (end.relu) g.map(CUDNN_POINTWISE_RELU_FWD, {latest}, y);
  return g;
}

} // namespace cudnn
