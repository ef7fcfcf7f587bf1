// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../common/layer_shapes.hpp"
#include "lib/convolution_graph.hpp"
#include "ops/epilogue.hpp"
#include "tuning/kernel_choices.hpp"

#include <array>

namespace cudnn {

// y = f(W * x + bias), cross-correlation, by graphs of cuDNN with deterministic engines. Bias and ReLU are in the
// forward graph if cuDNN has an engine for the whole graph. attach() throws rg::error, RG_E_UNSUPPORTED, if cuDNN has
// no engine for a pass, or lacks the engine that another instance chose.
class convolution : public op {
public:
  using shape = executors::window_shape;
  // `bias` null: none. `f` empty: identity.
  convolution(std::string name, value* in, value* out, const shape& s, weight* w, weight* bias,
              std::optional<function> f);
  void prepare(device& d) override;
  void attach(device& d, kernel_choices& c) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
  double flops() const override;
  std::size_t held() const override { return end_.held(); }

private:
  // Addresses of x, the filter and y, or of their gradients, and of the bias.
  using addresses = std::array<std::pair<graph::tensor, void*>, 4>;
  addresses at(const void* x, const void* filter, const void* y) const;
  // Returns the shape with the type and layout in which d computes.
  convolution_shape shape_in(const device& d) const;
  // Chooses an engine for the graph that computes `made`, with the epilogue if `fused`. Returns an empty execution if
  // there is no engine for the graph with the epilogue; otherwise throws as attach(). `a` is used to time engines.
  execution plan_for(device& d, kernel_choices& c, graph::direction made, bool fused, const addresses& a) const;
  // Enqueues e.
  void perform(device& d, execution& e, const addresses& a) const;

  shape shape_;
  weight* w_;
  epilogue end_;
  bool fused_ = false;
  execution forward_, data_, weights_by_; // y; the gradient of x; the gradient of the filter
  buffer filter_gradient_;                // the filter's gradient, if it must be converted or added afterwards
};

} // namespace cudnn
