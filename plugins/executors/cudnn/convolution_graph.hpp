// SPDX-License-Identifier: Apache-2.0
//
// Convolutions as graphs of cuDNN.
#pragma once

#include "graph.hpp"

namespace cudnn {

struct convolution_shape {
  number type;
  bool last; // channels last
  std::int64_t samples, in_channels, in_height, in_width, out_channels, out_height, out_width, kernel, stride, padding;
};

// The epilogue of a convolution in the same graph: a bias per channel, in fp32, and a ReLU.
struct convolution_end {
  bool bias = false, relu = false;
};

class convolution_graph {
public:
  // Numbers of the tensors in memory: x, the filter and y, or their gradients, and the bias.
  enum : graph::tensor { x = 1, filter, y, bias };
  using direction = graph::direction;
  // Returns the graph that computes `made` from the other two tensors, and with `add` adds it to the tensor. Only y may
  // have an epilogue, and then `add` is ignored.
  static graph of(const convolution_shape& s, direction made, bool add, const convolution_end& end = {});
};

} // namespace cudnn
