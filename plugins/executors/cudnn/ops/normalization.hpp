// SPDX-License-Identifier: Apache-2.0
//
// Batch norm and layer norm.
#pragma once

#include "runtime/program.hpp"

namespace cudnn {

// Batch norm, with a residual that is added (null: none) and then, if `relu`, a ReLU. Training uses the statistics of
// the batch and updates the running ones, evaluation uses the running ones. A step sets a running statistic r to
// momentum * r + (1 - momentum) * that of the batch.
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
  std::size_t held() const override { return mean_.bytes() + inverse_.bytes(); }

private:
  tensors t_;
  float epsilon_, momentum_;
  bool relu_;
  buffer mean_, inverse_; // per channel, of the batch
};

// Layer norm over the features of each position, with scale and bias per feature.
class layer_norm : public op {
public:
  layer_norm(std::string name, value* in, value* out, weight* scale, weight* bias, double epsilon);
  void prepare(device& d) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
  std::size_t held() const override { return mean_.bytes() + inverse_.bytes(); }

private:
  std::size_t rows() const { return batch * positions(*output_); }
  weight *scale_, *bias_;
  float epsilon_;
  buffer mean_, inverse_; // per row
};

} // namespace cudnn
