// SPDX-License-Identifier: Apache-2.0
//
// The ops of regatta/layers.hpp for pictures and vectors of features, in fp32 (no TF32).
#pragma once

#include "kernels.hpp"
#include "program.hpp"

namespace cudnn {

// y = W * x, cross-correlation, and a bias that may be missing. Algorithms are those that cuDNN's heuristics name
// first among the deterministic ones.
class convolution : public op {
public:
  struct shape {
    std::size_t kernel, stride, padding;
  };
  convolution(std::string name, value* in, value* out, const shape& s, weight* w, weight* bias);
  void prepare(device& d, std::size_t batch) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
  double flops() const override;

private:
  shape shape_;
  weight *w_, *bias_;
  tensor_descriptor x_, y_;
  filter_descriptor filter_;
  convolution_descriptor convolution_;
  cudnnConvolutionFwdAlgo_t forward_{};
  cudnnConvolutionBwdDataAlgo_t data_{};
  cudnnConvolutionBwdFilterAlgo_t weights_by_{};
};

// y = x W^T + bias, for every row of x: a sample, or a place of one.
class dense : public op {
public:
  dense(std::string name, value* in, value* out, weight* w, weight* bias, std::size_t inputs, std::size_t outputs);
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
  double flops() const override;

private:
  std::size_t rows() const { return batch_ * inputs_[0].from->elements() / ins_; }
  weight *w_, *bias_;
  std::size_t ins_, outs_;
};

class batch_norm : public op {
public:
  struct tensors {
    weight *scale, *bias, *mean, *variance;
  };
  batch_norm(std::string name, value* in, value* out, const tensors& t, double epsilon, double momentum);
  void prepare(device& d, std::size_t batch) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;

private:
  tensors t_;
  double epsilon_, momentum_;
  tensor_descriptor x_, channels_;
  buffer mean_, inverse_; // of the batch
};

class relu : public op {
public:
  using op::op;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
};

class dropout : public op {
public:
  dropout(std::string name, value* in, value* out, double p, std::uint32_t layer);
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;

private:
  kernels::dropping of(const run& r) const;
  double p_;
  std::uint32_t layer_;
};

class pooling : public op {
public:
  pooling(std::string name, value* in, value* out, const window& w, bool average);
  void prepare(device& d, std::size_t batch) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;

private:
  std::size_t planes() const { return batch_ * inputs_[0].from->channels; }
  window window_;
  bool average_;
  buffer places_;
};

class addition : public op {
public:
  using op::op;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
};

// The second input is the batch's labels.
class cross_entropy : public op {
public:
  using op::op;
  void prepare(device& d, std::size_t batch) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
  // Of the last forward pass, not divided. Waits for it.
  double sum(device& d);

  static constexpr std::size_t metric_sums = 3; // right ones, samples, loss

private:
  const std::int32_t* labels() const { return reinterpret_cast<const std::int32_t*>(inputs_[1].from->data); }
  void check_labels(const run& r, std::size_t samples) const;
  buffer probabilities_, losses_, right_;
  std::vector<double> host_losses_;
  std::vector<std::int32_t> host_right_;
};

} // namespace cudnn
