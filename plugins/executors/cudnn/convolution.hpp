// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../common/layer_shapes.hpp"
#include "choices.hpp"
#include "convolution_graph.hpp"
#include "epilogue.hpp"

#include <array>

namespace cudnn {

// y = f(W * x + bias), cross-correlation: graphs of cuDNN's, by engines that always give the same result. Bias and ReLU
// are in the forward graph where cuDNN has an engine for all of it.
class convolution : public op {
public:
  using shape = executors::window_shape;
  convolution(std::string name, value* in, value* out, const shape& s, weight* w, weight* bias,
              std::optional<function> f);
  void prepare(device& d) override;
  void attach(device& d, choices& c) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
  double flops() const override;

private:
  // Of the graphs' tensors; x, filter and y or their gradients.
  using addresses = std::array<std::pair<graph::tensor, void*>, 4>;
  addresses at(const void* x, const void* filter, const void* y) const;
  convolution_shape shape_in(const device& d) const;
  execution plan_for(device& d, choices& c, graph::direction made, bool fused, const addresses& a) const;
  void perform(device& d, execution& e, const addresses& a) const;

  shape shape_;
  weight* w_;
  epilogue end_;
  bool fused_ = false;
  execution forward_, data_, weights_by_;
  buffer filter_slope_; // where it is not made where it belongs: converted, or added to what is there
};

} // namespace cudnn
