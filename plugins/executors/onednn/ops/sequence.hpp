// SPDX-License-Identifier: Apache-2.0
//
// Ops on sequences: values whose positions are rows of features, contiguous and without padding: [batch, positions,
// features].
#pragma once

#include "runtime/program.hpp"

namespace onednn {

// The number of positions of a sequence, and of features of a position.
inline std::size_t places(const value& v) {
  return v.channels;
}
inline std::size_t features(const value& v) {
  return v.height;
}

// y = f(x) for every element, where f is not fused into a dense layer.
class row_map final : public op {
public:
  row_map(std::string name, value* in, value* out, row_function f, const device& dev)
      : op(std::move(name), {in}, out), dev_(dev), function_(f) {}
  void plan(memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;
  bool backward_in_place() const override { return true; }

private:
  const device& dev_;
  row_function function_;
  std::size_t rows_ = 0;
};

// Dropout, addition of a residual and layer norm, in this order, each optional.
struct row_stages {
  double dropout = 0;                       // probability that an element becomes 0; 0: no dropout
  std::uint32_t layer = 0;                  // of the dropout, for its random stream
  value* residual = nullptr;                // null: none
  weight *scale = nullptr, *bias = nullptr; // of the layer norm; both null: none
  double epsilon = 0;
};

class row_stage final : public op {
public:
  row_stage(std::string name, value* in, value* out, const row_stages& s, const device& dev);
  void plan(memory_plan&) override;
  void attach(const memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;
  bool forward_in_place() const override { return !stages_.residual || stages_.residual != inputs_[0].from; }
  bool backward_in_place() const override { return true; }

private:
  const device& dev_;
  row_stages stages_;
  std::size_t batch_ = 0, mask_stride_ = 0;
  bool dropped_ = false; // the last forward pass applied dropout
  slot mask_slot_ = no_slot, normal_slot_ = no_slot;
  std::uint8_t* mask_ = nullptr;
  float* normal_ = nullptr;
  std::vector<float> inverse_; // [batch, positions]
  std::vector<float> sums_;    // [batch][scale, bias][features]
};

// Returns the bytes to allocate for a sample's dropout mask with `elements` bits, including the 8 readable bytes behind
// it (see sequence_kernels.hpp).
std::size_t mask_bytes(std::size_t elements);

// The arguments of sequence_kernels::draw for one step and layer. `p` is the probability that an element becomes 0.
struct dropout_draw {
  std::uint64_t seed; // of step and layer
  std::uint32_t threshold;
  dropout_draw(const run& r, double p, std::uint32_t layer);
};

} // namespace onednn
