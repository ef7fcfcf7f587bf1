// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "epilogue.hpp"
#include "product.hpp"

namespace cudnn {

// y = f(x W^T + bias), for every row of x: a sample, or a place of one.
class dense : public op {
public:
  dense(std::string name, value* in, value* out, weight* w, weight* bias, std::optional<function> f);
  void prepare(device& d) override;
  void attach(device& d, choices& c) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
  double flops() const override;

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
  std::size_t ins_, outs_;
};

} // namespace cudnn
