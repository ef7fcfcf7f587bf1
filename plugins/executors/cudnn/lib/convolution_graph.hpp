// SPDX-License-Identifier: Apache-2.0
//
// Convolutions as graphs of cuDNN.
#pragma once

#include "lib/cudnn_graph.hpp"

namespace cudnn {

// Kernel, stride and padding are the same for height and width.
struct convolution_shape {
  dtype type; // of x, the filter and y; arithmetic is fp32
  bool last;  // channels last
  std::int64_t samples, in_channels, in_height, in_width, out_channels, out_height, out_width, kernel, stride, padding;
};

// The epilogue of a convolution in the same graph: a bias per output channel, in fp32, then a ReLU.
struct convolution_end {
  bool bias = false, relu = false;
};

class convolution_graph {
public:
  // Numbers of the tensors in memory, for execution::run(): x, the filter and y, each of which is a gradient if the
  // graph computes or reads its gradient; and the bias, which exists only with convolution_end::bias.
  enum : graph::tensor { x = 1, filter, y, bias };
  using direction = graph::direction;
  // Returns the graph that computes tensor `made` from the other two: y, or the gradient of x or of the filter (w).
  // With `add` the graph adds to the content of that tensor, else it overwrites it. Requires `made` to be y if there is
  // an epilogue; `add` is then ignored. Throws rg::error, RG_E_DEVICE, if cuDNN rejects a size.
  static graph of(const convolution_shape& s, direction made, bool add, const convolution_end& end = {});
};

} // namespace cudnn
