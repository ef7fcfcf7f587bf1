// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/epilogue.hpp"
#include "lib/gemm.hpp"

namespace cudnn {

// y = f(x W^T + bias) for every row of x: a sample, or a position of a sequence.
class dense : public op {
public:
  // w: [outputs, inputs]. `bias` null: none. `f` empty: identity. `below`: the dense layer that computes `in`, if only
  // this layer reads `in`; else null. It must be attached before this layer, and must outlive it.
  dense(std::string name, value* in, value* out, weight* w, weight* bias, std::optional<function> f, dense* below);
  void prepare(device& d) override;
  void attach(device& d, choices& c) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
  double flops() const override;
  std::size_t held() const override { return passed_.bytes(); }

private:
  std::size_t rows() const { return batch * inputs_[0].from->elements() / ins_; }
  picture outputs() const { return {static_cast<std::uint32_t>(outs_), 1, true}; } // of one row
  // The current operands of the GEMMs: forward, gradient of the weights, gradient of the input.
  product::operands ahead() const;
  product::operands weights_slope(float* bias_slope) const;
  product::operands data_slope() const;

  weight* w_;
  epilogue end_;
  product forward_, weights_by_, data_;
  // If cuBLASLt has both epilogues, the GEMM that computes this layer's input gradient also applies the derivative of
  // below_'s ReLU, by the mask that below_'s forward GEMM wrote.
  dense* below_;
  bool read_by_one_ = false; // by a dense layer
  bool slope_taken_ = false; // the reader's GEMM applies our ReLU's derivative
  buffer passed_;            // mask of the elements that the ReLU let pass
  std::size_t ins_, outs_;
};

} // namespace cudnn
