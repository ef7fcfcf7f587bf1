// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/program.hpp"

namespace cudnn {

// y = a . b / (|a| |b|) per sample, or 0, with zero gradients, if |a| |b| < 1e-12.
class cosine : public op {
public:
  using op::op;
  void prepare(device& d) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
  std::size_t held() const override { return sizes_.bytes(); }
  double flops() const override { return 12.0 * static_cast<double>(inputs_[0].from->elements()); }

private:
  buffer sizes_; // of kernels::cosine()
};

} // namespace cudnn
