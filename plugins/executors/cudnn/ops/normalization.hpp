// SPDX-License-Identifier: Apache-2.0
//
// Batch norm, pooling and scaled channels.
#pragma once

#include "runtime/program.hpp"

namespace cudnn {

// Batch norm, with a residual that is added (null: none) and then, if `relu`, a ReLU. Training uses the statistics of
// the batch and updates the running ones, evaluation uses the running ones; `momentum` as in batch_statistics().
class batch_norm : public op {
public:
  // One element per channel each. mean and variance: the running statistics, of kind RG_TENSOR_STATE.
  struct tensors {
    weight *scale, *bias, *mean, *variance;
  };
  batch_norm(std::string name, value* in, value* residual, value* out, const tensors& t, double epsilon,
             double momentum, bool relu);
  void prepare(device& d) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;

private:
  tensors t_;
  float epsilon_, momentum_;
  bool relu_;
  buffer mean_, inverse_; // per channel, of the batch
};

// Max pooling, or with `average` average pooling, of each channel; w.step is ignored.
class pooling : public op {
public:
  pooling(std::string name, value* in, value* out, const window& w, bool average)
      : op(std::move(name), {in}, out), window_(w), average_(average) {}
  void prepare(device& d) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;

private:
  window window_;
  bool average_;
  buffer places_; // max pooling: positions of the maxima
};

// Multiplies the first input, an image, by the second, which has one factor per sample and channel.
class channel_scale : public op {
public:
  using op::op;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
};

} // namespace cudnn
