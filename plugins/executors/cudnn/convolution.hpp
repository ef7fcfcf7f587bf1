// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "choices.hpp"
#include "epilogue.hpp"

namespace cudnn {

// y = f(W * x + bias), cross-correlation; by cuDNN, with algorithms that always give the same
// result.
class convolution : public op {
public:
  struct shape {
    std::size_t kernel, stride, padding;
  };
  convolution(std::string name, value* in, value* out, const shape& s, weight* w, weight* bias,
              std::optional<function> f);
  void prepare(device& d) override;
  void attach(device& d, choices& c) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
  double flops() const override;

private:
  void* filter_slope() const;

  shape shape_;
  weight* w_;
  epilogue end_;
  tensor_descriptor x_, y_;
  filter_descriptor filter_;
  convolution_descriptor convolution_;
  cudnnConvolutionFwdAlgo_t forward_{};
  cudnnConvolutionBwdDataAlgo_t data_{};
  cudnnConvolutionBwdFilterAlgo_t weights_by_{};
  buffer filter_slope_; // where the filter is a copy: its gradient, as it lies
};

} // namespace cudnn
