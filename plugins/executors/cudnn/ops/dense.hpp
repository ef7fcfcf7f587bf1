// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/gemm.hpp"
#include "ops/epilogue.hpp"

namespace cudnn {

// y = f(x W^T + bias) for every row of x: a sample, or a position of a sequence.
class dense : public op {
public:
  // w: [outputs, inputs]. `bias` null: none. `f` empty: identity.
  dense(std::string name, value* in, value* out, weight* w, weight* bias, std::optional<function> f);
  void prepare(device& d) override;
  void attach(device& d, kernel_choices& c) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
  double flops() const override;
  std::size_t held() const override { return end_.held(); }

private:
  std::size_t rows() const { return batch * inputs_[0].from->elements() / ins_; }
  image_layout outputs() const { return {static_cast<std::uint32_t>(outs_), 1, true}; } // of one row
  // The current operands of the GEMMs: forward, gradient of the weights, gradient of the input.
  gemm::operands forward_operands() const;
  gemm::operands weights_gradient(float* bias_gradient) const;
  gemm::operands data_gradient() const;

  weight* w_;
  epilogue end_;
  gemm forward_, weights_by_, data_;
  std::size_t ins_, outs_;
};

} // namespace cudnn
