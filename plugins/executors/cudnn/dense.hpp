// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "epilogue.hpp"
#include "product.hpp"

namespace cudnn {

// y = f(x W^T + bias), for every row of x: a sample, or a place of one.
class dense : public op {
public:
  // `below`: the layer that nobody but this one reads; null: there is none.
  dense(std::string name, value* in, value* out, weight* w, weight* bias, std::optional<function> f, dense* below);
  void prepare(device& d) override;
  void attach(device& d, choices& c) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
  double flops() const override;
  std::size_t held() const override { return passed_.bytes(); }

private:
  std::size_t rows() const { return batch * inputs_[0].from->elements() / ins_; }
  picture outputs() const { return {static_cast<std::uint32_t>(outs_), 1, true}; } // of a row
  // What they read and write, now.
  product::operands ahead() const;
  product::operands weights_slope(float* bias_slope) const;
  product::operands data_slope() const;

  weight* w_;
  epilogue end_;
  product forward_, weights_by_, data_;
  // The slope of a ReLU below is taken by the product that makes what goes through it, where cuBLASLt has both sides.
  dense* below_;
  bool read_by_one_ = false; // a layer like this one
  bool slope_taken_ = false; // there
  buffer passed_;            // the mask of what the ReLU let pass
  std::size_t ins_, outs_;
};

} // namespace cudnn
