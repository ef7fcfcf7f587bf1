// SPDX-License-Identifier: Apache-2.0
//
// Batch norm and layer norm, each fused with the ops around it.
#pragma once

#include "runtime/program.hpp"

namespace onednn {

// The stages of fused_batch_norm. Without `norm`, the weights are null and epsilon and momentum are not used. `pool`
// and `dropout` exclude each other.
struct batch_norm_stages {
  bool norm = false, relu = false, pool = false;
  bool sync = false; // the statistics are those of the batches of all workers
  double epsilon = 0, momentum = 0;
  weight *scale = nullptr, *bias = nullptr, *mean = nullptr, *variance = nullptr;
  // Bias of the preceding layer, which does not add it itself; or null. Batch norm subtracts every constant, so in
  // training this bias only enters the running mean, and its gradient is zero.
  weight* folded = nullptr;
  double dropout = 0;      // probability that an element becomes zero
  std::uint32_t layer = 0; // of the dropout, for its random stream
};

// Batch norm, addition of a residual, ReLU, then dropout or 2x2 max pooling, each optional, in one op, on values
// blocked by channels. T: type of activations in memory, float or bf16. Statistics and coefficients are fp32. An
// evaluation uses the running mean and variance, and no dropout.
template <class T> class fused_batch_norm final : public op {
public:
  // `residual`, of the input's shape and type, is added after batch norm. It may be null, and must be null with pooling
  // or without batch norm. With s.sync a step waits for the other workers. s.momentum is the weight of the old running
  // mean and variance in each step's update; the batch's variance is divided by the number of elements, not by one
  // less.
  fused_batch_norm(std::string name, value* in, value* residual, value* out, const batch_norm_stages& s,
                   const device& dev);
  void plan(memory_plan&) override;
  void attach(const memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;
  bool forward_in_place() const override { return !stages_.norm && !stages_.pool; }
  bool backward_in_place(std::size_t input) const override { return !stages_.pool && input + 1 == inputs_.size(); }

private:
  // Sums of a channel over the samples: forward of x - shift and its square, backward of the masked gradient g and
  // g (x - mean).
  struct totals {
    double sum, product;
  };

  // Whether a mask is kept for the backward pass.
  bool masks() const { return stages_.relu || stages_.pool || stages_.dropout > 0; }
  // Returns the stage flags of a forward pass, the index into batch_norm_kernels::forward.
  unsigned flags(bool training) const;
  bool residual() const { return inputs_.size() > 1; }
  // Returns the operands of a channel block; of its samples those of slice 0 to slices_ - 1.
  batch_norm_pass<T> view(std::size_t block, std::size_t slice) const;
  // Calls f(block, slice) for all blocks and slices, on the device's threads.
  template <class F> void each_slice(const F& f) const;
  // Runs reduce(block, slice), finish(block) and apply(block, slice) for all blocks and slices, in this order for each
  // block.
  template <class Reduce, class Finish, class Apply> void over_blocks(const Reduce&, const Finish&, const Apply&) const;
  // As over_blocks(), but between reduce() and finish() sets shared_ to the sums of of(channel) over all workers.
  template <class Reduce, class Of, class Finish, class Apply>
  void over_workers(const std::string& name, const Reduce&, const Of&, const Finish&, const Apply&);
  bool syncs() const { return stages_.sync && dev_.collectives.workers() > 1; }
  double count() const { return static_cast<double>(batch_ * inputs_[0].from->spatial()); } // elements of a channel
  // Returns a channel's sums_ and products_ over all slices, of this worker.
  totals total(std::size_t channel) const;
  // Returns a channel's sums of x and of its square, of this worker, from total().
  totals moments_of(std::size_t channel) const;
  // Sets shift[lane] to an element of each channel of the block.
  void shift_of(std::size_t block, float* shift) const;
  // Sets the slice's sums_ and products_ to the sums of x - shift and of its square.
  void measure(std::size_t block, std::size_t slice);
  // Set mean_, inverse_ and the coefficients a and b of the forward pass: from the batch's statistics, which also
  // update the running ones; or the coefficients alone from the running statistics.
  void normalise_by_batch(std::size_t block);
  void normalise_by_state(std::size_t block);
  // Sets a and b of y = a x + b for channel c; inverse = 1 / sqrt(variance + epsilon).
  void set_affine(std::size_t c, double mean, double inverse);
  // Sets the gradients of scale and bias, and the coefficients a, b and c of batch_norm_kernels::backward.
  void differentiate(std::size_t block, const run& r);

  const device& dev_;
  batch_norm_stages stages_;
  std::size_t lanes_, blocks_, slices_ = 1, batch_ = 0;
  slot mask_slot_ = no_slot;
  mask_word* mask_ = nullptr;
  float scale_ = 1; // factor of the elements that dropout keeps, in this step
  std::vector<float> mean_, inverse_;
  std::vector<float> coefficients_;     // [block][a, b, c][lane]
  std::vector<double> sums_, products_; // [block][slice][lane]
  // With `sync`, of all workers: [channel] sums, [channel] products, then the elements of a channel.
  std::vector<double> shared_;
  std::string forward_name_, backward_name_; // of these sums
};

// Dropout, addition of a residual and layer norm, in this order, each optional.
struct layer_norm_stages {
  double dropout = 0;                       // probability that an element becomes 0; 0: no dropout
  std::uint32_t layer = 0;                  // of the dropout, for its random stream
  value* residual = nullptr;                // null: none
  weight *scale = nullptr, *bias = nullptr; // of the layer norm; both null: none
  double epsilon = 0;
};

// On fp32 sequences; the layer norm is over the features of a position. An evaluation has no dropout.
class fused_layer_norm final : public op {
public:
  fused_layer_norm(std::string name, value* in, value* out, const layer_norm_stages& s, const device& dev);
  void plan(memory_plan&) override;
  void attach(const memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;
  bool forward_in_place() const override { return !stages_.residual || stages_.residual != inputs_[0].from; }
  bool backward_in_place(std::size_t) const override { return true; }

private:
  const device& dev_;
  layer_norm_stages stages_;
  std::size_t batch_ = 0, mask_stride_ = 0;
  bool dropped_ = false; // the last forward pass applied dropout
  slot mask_slot_ = no_slot, normal_slot_ = no_slot;
  std::uint8_t* mask_ = nullptr;
  float* normal_ = nullptr;
  std::vector<float> inverse_; // [batch, positions]
  std::vector<float> sums_;    // [batch][scale, bias][features]
};

} // namespace onednn
