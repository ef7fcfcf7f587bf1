// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../common/layer_shapes.hpp"
#include "runtime/program.hpp"

namespace onednn {

struct pool_shape : executors::window_shape {
  bool average; // else maximum; an average does not count padding
};

// Pooling with any square window, by oneDNN's primitives. Input and output are blocked by channels and of one type.
// Compilation fuses 2x2 max pooling into fused_batch_norm where it can.
class pooling final : public op {
public:
  pooling(std::string name, value* in, value* out, const pool_shape& s, const device& dev);
  void prepare(const preparation&) override;
  void plan(memory_plan&) override;
  void attach(const memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;
  std::size_t scratch_bytes() const override { return scratch_; }

private:
  const device& dev_;
  pool_shape shape_;
  dnnl::primitive forward_, backward_;
  dnnl::memory x_, y_, dx_, dy_, workspace_, scratchpad_forward_, scratchpad_backward_;
  std::size_t scratch_ = 0;
  slot slot_ = no_slot;
};

// Averages each channel, [channels, height, width] to [channels], in fp32.
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

} // namespace onednn
