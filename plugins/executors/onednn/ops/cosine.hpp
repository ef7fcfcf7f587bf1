// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/program.hpp"

namespace onednn {

// The cosine a . b / (|a| |b|) of each sample's two vectors. If |a| |b| < 1e-12, the cosine and both gradients are 0.
class cosine final : public op {
public:
  cosine(std::string name, value* a, value* b, value* out, const device& dev)
      : op(std::move(name), {a, b}, out), dev_(dev) {}
  void plan(memory_plan&) override;
  void attach(const memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;
  double flops() const override { return 12.0 * static_cast<double>(inputs_[0].from->elements()); }

private:
  struct sizes {
    float cosine, a, b; // a, b: squared lengths; all 0 if |a| |b| < 1e-12
  };
  const device& dev_;
  std::size_t batch_ = 0;
  slot slot_ = no_slot;
  sizes* sizes_ = nullptr; // [batch]
};

} // namespace onednn
