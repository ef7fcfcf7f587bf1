// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "product.hpp"

namespace onednn {

// y = x w^T + b, multiplied in bf16. Values, weights and gradients are floats in memory.
class half_dense final : public op {
public:
  half_dense(std::string name, value* in, value* out, weight* w, weight* bias, const device& dev);
  void prepare(const preparation&) override;
  void plan(memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;
  std::size_t scratch_bytes() const override { return scratch_; }
  double flops() const override;
  void report(std::string& text) const override;

private:
  // A copy of `count` floats at this place of the scratch.
  const bf16* narrow(std::size_t at, const float* from, std::size_t count) const;

  const device& dev_;
  weight *weight_, *bias_;
  half_product forward_, weights_gradient_, data_gradient_;
  std::size_t batch_ = 0, x_at_ = 0, y_at_ = 0, w_at_ = 0, product_at_ = 0, scratch_ = 0;
};

} // namespace onednn
