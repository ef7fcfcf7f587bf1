// SPDX-License-Identifier: Apache-2.0
//
// Batch norm, addition of a residual, ReLU, then dropout or 2x2 max pooling, each optional, fused into one op.
#pragma once

#include "runtime/program.hpp"

namespace onednn {

// The stages of an activation. Without `norm`, the weights are null and epsilon and momentum are not used. `pool` and
// `dropout` exclude each other.
struct stages {
  bool norm = false, relu = false, pool = false;
  double epsilon = 0, momentum = 0;
  weight *scale = nullptr, *bias = nullptr, *mean = nullptr, *variance = nullptr;
  // Bias of the preceding layer, which does not add it itself; or null. Batch norm subtracts every constant, so in
  // training this bias only enters the running mean, and its gradient is zero.
  weight* folded = nullptr;
  double dropout = 0;      // probability that an element becomes zero
  std::uint32_t layer = 0; // of the dropout, for its random stream
};

// T: type of activations in memory, float or bf16. Statistics and coefficients are fp32.
template <class T> class activation final : public op {
public:
  // `residual`, of the input's shape and type, is added after batch norm. It may be null, and must be null with pooling
  // or without batch norm. s.momentum is the weight of the old running mean and variance in each step's update.
  activation(std::string name, value* in, value* residual, value* out, const stages& s, const device& dev);
  void plan(memory_plan&) override;
  void attach(const memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;
  bool forward_in_place() const override { return !stages_.norm && !stages_.pool; }
  bool backward_in_place() const override { return !stages_.pool; }
  std::size_t in_place_input() const override { return inputs_.size() - 1; }

private:
  struct totals {
    double sum, product;
  };

  bool masks() const { return stages_.relu || stages_.pool || stages_.dropout > 0; }
  unsigned flags(bool training) const;
  bool residual() const { return inputs_.size() > 1; }
  pass_of<T> view(std::size_t block, std::size_t part) const;
  template <class Reduce, class Finish, class Apply> void over_blocks(const Reduce&, const Finish&, const Apply&) const;
  totals total(std::size_t channel) const;
  void shift_of(std::size_t block, float* shift) const;
  void measure(std::size_t block, std::size_t part);
  void normalise_by_batch(std::size_t block);
  void normalise_by_state(std::size_t block);
  void set_affine(std::size_t c, double mean, double inverse);
  void differentiate(std::size_t block, const run& r);

  const device& dev_;
  stages stages_;
  std::size_t lanes_, blocks_, parts_ = 1, batch_ = 0;
  slot mask_slot_ = no_slot;
  mask_word* mask_ = nullptr;
  float scale_ = 1; // factor of the elements that dropout keeps, in this step
  std::vector<float> mean_, inverse_;
  std::vector<float> coefficients_;     // [block][a, b, c][lane]
  std::vector<double> sums_, products_; // [block][part][lane]
};

} // namespace onednn
