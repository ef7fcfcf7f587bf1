// SPDX-License-Identifier: Apache-2.0
//
// Ops on vectors of features, and losses for ranking.
#pragma once

#include "runtime/program.hpp"

namespace onednn {

// Concatenates vectors of features, in the order of the inputs.
class concatenation final : public op {
public:
  concatenation(std::string name, const std::vector<value*>& parts, value* out, const device& dev)
      : op(std::move(name), parts, out), dev_(dev) {}
  void plan(memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;

private:
  const device& dev_;
  std::size_t batch_ = 0;
};

// x / (1 + |x|) of every element.
class softsign final : public op {
public:
  softsign(std::string name, value* in, value* out, const device& dev) : op(std::move(name), {in}, out), dev_(dev) {}
  void plan(memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;

private:
  const device& dev_;
  std::size_t batch_ = 0;
};

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

// Softmax and cross-entropy over two classes. `label` is an input of type RG_I32, 0 or 1 per sample; forward() throws
// RG_E_OPERATION for another label. The metric is the area under the ROC curve, from a histogram of the probability of
// class 1 with `buckets` buckets.
class auc_cross_entropy final : public loss {
public:
  auc_cross_entropy(std::string name, value* logits, value* label, value* out, std::size_t buckets);
  void plan(memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;

private:
  std::size_t buckets_, batch_ = 0;
  std::vector<float> wrong_; // [batch]: probability of the wrong class
};

// max(0, margin - positive + negative); both inputs are one score per sample. A pair is in order if positive >
// negative; the metric is the number of pairs in order divided by the number of the other pairs.
class pairwise_hinge final : public loss {
public:
  pairwise_hinge(std::string name, value* positive, value* negative, value* out, double margin)
      : loss(std::move(name), {positive, negative}, out, executors::pairs_in_order()),
        margin_(static_cast<float>(margin)) {}
  void plan(memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;

private:
  float loss_of(std::size_t sample) const;

  float margin_;
  std::size_t batch_ = 0;
};

} // namespace onednn
