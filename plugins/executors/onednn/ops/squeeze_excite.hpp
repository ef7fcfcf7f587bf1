// SPDX-License-Identifier: Apache-2.0
//
// The last layer of squeeze-and-excitation. Its inputs and output are fp32 and blocked by channels, see `value`.
#pragma once

#include "runtime/program.hpp"

namespace onednn {

// Multiplies `in`, [channels, height, width], by `factors`, [channels]: one factor per channel of every sample.
class channel_scale final : public op {
public:
  channel_scale(std::string name, value* in, value* factors, value* out, const device& dev)
      : op(std::move(name), {in, factors}, out), dev_(dev) {}
  void plan(memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;
  // Not the factors: their gradient is written while other channels of the output's are still read.
  bool backward_in_place(std::size_t input) const override { return input == 0; }

private:
  const device& dev_;
  std::size_t batch_ = 0;
};

} // namespace onednn
