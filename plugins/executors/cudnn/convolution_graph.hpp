// SPDX-License-Identifier: Apache-2.0
//
// Convolutions as cuDNN's graphs.
#pragma once

#include "graph.hpp"

namespace cudnn {

struct convolution_shape {
  number type;
  bool last; // channels last
  std::int64_t samples, in_channels, in_height, in_width, out_channels, out_height, out_width, kernel, stride, padding;
};

// What follows a convolution in one graph with it: a bias of the channels, in fp32, and a ReLU.
struct convolution_end {
  bool bias = false, relu = false;
};

class convolution_graph {
public:
  // The tensors in memory: pictures or their gradients, the filter or its, the bias.
  enum : graph::tensor { x = 1, filter, y, bias };
  using direction = graph::direction;
  // One of the three of the other two; onto what is there if `add`. y may have an end, and then is not added.
  static graph of(const convolution_shape& s, direction made, bool add, const convolution_end& end = {});
};

} // namespace cudnn
