// SPDX-License-Identifier: Apache-2.0
//
// Losses, in which a network ends. forward() sets the loss's element of run::losses in training and adds to run::sums
// in an evaluation, where it ignores padding samples; it does not write the output. Logits and scores are fp32.
#pragma once

#include "runtime/program.hpp"

namespace onednn {

// Cross-entropy of the softmax of logits [batch, classes]. `label` is an input of type RG_I32 with one label per
// sample, from 0 to classes - 1; forward() throws RG_E_OPERATION for any other. The metric is top-1 accuracy.
class cross_entropy final : public loss {
public:
  cross_entropy(std::string name, value* logits, value* label, value* out, const device& dev);
  void plan(memory_plan&) override;
  void attach(const memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;

private:
  const device& dev_;
  std::size_t batch_ = 0;
  slot slot_ = no_slot;
  float* probabilities_ = nullptr; // [batch, classes]
  std::vector<double> losses_;     // [batch]; summed in order, for any number of threads
};

// Softmax and cross-entropy over a vocabulary at every position of a sequence of logits. `smoothing` is the part of the
// target's probability that is spread evenly over the vocabulary. `labels` is an input of type RG_I32; positions with
// label 0 are ignored. The metric is the accuracy over the other positions if `accuracy`, else their perplexity without
// smoothing. forward() throws RG_E_OPERATION for a label outside of the vocabulary.
class token_cross_entropy final : public loss {
public:
  token_cross_entropy(std::string name, value* logits, value* labels, value* out, double smoothing, bool accuracy,
                      const device& dev);
  void plan(memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;
  bool gradient_over_input() const override { return true; }

private:
  const device& dev_;
  double smoothing_;
  std::size_t batch_ = 0;
  const std::int32_t* labels_ = nullptr;
  std::vector<double> losses_, plain_losses_; // by row; plain: without smoothing
  std::vector<float> shifts_;                 // log of the sum of exponentials, by row
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
// negative; the metric is the number of pairs in order divided by that of the other pairs, or by 1 if there is none.
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
