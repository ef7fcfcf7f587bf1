// SPDX-License-Identifier: Apache-2.0
//
// Ops on vectors of features, and what ranks by them.
#pragma once

#include "program.hpp"

namespace onednn {

// Vectors, one after the other.
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

// x / (1 + |x|).
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

// a . b / (|a| |b|), or 0 where that cannot be said.
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
    float cosine, a, b; // squares of the lengths; b 0 where the cosine cannot be said
  };
  const device& dev_;
  std::size_t batch_ = 0;
  slot slot_ = no_slot;
  sizes* sizes_ = nullptr; // [batch]
};

// Softmax and cross-entropy over two classes, measured by the area under the curve.
class auc_cross_entropy final : public loss {
public:
  auc_cross_entropy(std::string name, value* logits, value* label, value* out, std::size_t buckets);
  void plan(memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;

private:
  std::size_t buckets_, batch_ = 0;
  std::vector<float> wrong_; // [batch]: probability of the class that the sample is not of
};

// max(0, margin - positive + negative), measured by how many pairs are in order.
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
