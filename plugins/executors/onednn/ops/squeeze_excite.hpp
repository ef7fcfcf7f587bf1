// SPDX-License-Identifier: Apache-2.0
//
// The layers of squeeze-and-excitation: averages of channels, a sigmoid, and scaling of channels. All inputs and
// outputs are fp32 and blocked by channels, see `value`.
#pragma once

#include "runtime/program.hpp"

namespace onednn {

// Averages each channel: [channels, height, width] to [channels].
class global_average final : public op {
public:
  global_average(std::string name, value* in, value* out, const device& dev)
      : op(std::move(name), {in}, out), dev_(dev) {}
  void plan(memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;

private:
  const device& dev_;
  std::size_t batch_ = 0;
};

// 1 / (1 + exp(-x)) of every element, on the calling thread.
class sigmoid final : public op {
public:
  sigmoid(std::string name, value* in, value* out) : op(std::move(name), {in}, out) {}
  void plan(memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;
  bool backward_in_place(std::size_t) const override { return true; }

private:
  std::size_t count_ = 0;
};

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
