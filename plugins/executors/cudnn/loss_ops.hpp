// SPDX-License-Identifier: Apache-2.0
//
// What networks end in.
#pragma once

#include "losses.hpp"
#include "program.hpp"

#include <cmath>

namespace cudnn {

// Softmax and cross-entropy over the classes of a sample.
class cross_entropy : public loss {
public:
  cross_entropy(std::string name, value* logits, value* labels, value* out)
      : loss(std::move(name), {logits, labels}, out) {}
  std::size_t metric_sums() const override { return 3; } // right ones, samples, loss
  const char* metric_name() const override { return "top1"; }
  double metric(const double* sums) const override { return sums[1] > 0 ? sums[0] / sums[1] : 0; }
  void prepare(device& d) override;
  void vary(const run& r) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;

protected:
  cross_entropy(std::string name, value* logits, value* labels, value* out, std::uint32_t classes, std::int32_t ignored,
                double smoothing)
      : loss(std::move(name), {logits, labels}, out), classes_(classes), ignored_(ignored),
        smoothing_(static_cast<float>(smoothing)) {}
  std::size_t rows(std::size_t samples) const { return samples * inputs_[1].from->elements(); }
  kernels::classifying what(std::size_t samples) const {
    return {rows(samples), classes_ ? classes_ : static_cast<std::uint32_t>(inputs_[0].from->elements()),
            inputs_[1].from->indices(), ignored_, smoothing_};
  }
  std::uint32_t classes_ = 0; // 0: as many as there are logits
  std::int32_t ignored_ = -1;
  float smoothing_ = 0;
  buffer losses_, plain_, shifts_, right_; // by row
};

// The same over a vocabulary at every place, with label smoothing; labels of 0 do not count.
class token_cross_entropy : public cross_entropy {
public:
  token_cross_entropy(std::string name, value* logits, value* labels, value* out, double smoothing, bool accuracy)
      : cross_entropy(std::move(name), logits, labels, out, features(*logits), 0, smoothing), accuracy_(accuracy) {}
  std::size_t metric_sums() const override { return 4; } // correct, counted, loss, loss without smoothing
  const char* metric_name() const override { return accuracy_ ? "masked_accuracy" : "perplexity"; }
  double metric(const double* sums) const override {
    if (sums[1] <= 0) return 0;
    return accuracy_ ? sums[0] / sums[1] : std::exp(sums[3] / sums[1]);
  }
  bool counts() const override { return true; }
  std::uint64_t count(const rg_batch& b) const override;
  void vary(const run& r) override;
  void forward(device& d, const run& r) override;

private:
  bool accuracy_;
};

// Softmax and cross-entropy over two classes, measured by the area under the curve.
class auc_cross_entropy : public loss {
public:
  auc_cross_entropy(std::string name, value* logits, value* label, value* out, std::size_t buckets)
      : loss(std::move(name), {logits, label}, out), buckets_(static_cast<std::uint32_t>(buckets)) {}
  std::size_t metric_sums() const override {
    return 2 * std::size_t{buckets_} + 2;
  } // negatives, positives, samples, loss
  const char* metric_name() const override { return "auc"; }
  double metric(const double* sums) const override;
  void prepare(device& d) override;
  void vary(const run& r) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;

private:
  std::uint32_t buckets_;
  buffer losses_, wrong_, histogram_;
};

// max(0, margin - positive + negative), measured by how many pairs are in order.
class pairwise_hinge : public loss {
public:
  pairwise_hinge(std::string name, value* positive, value* negative, value* out, double margin)
      : loss(std::move(name), {positive, negative}, out), margin_(static_cast<float>(margin)) {}
  std::size_t metric_sums() const override { return 3; } // in order, samples, loss
  const char* metric_name() const override { return "pos_neg_ratio"; }
  double metric(const double* sums) const override { return sums[0] / std::max(1.0, sums[1] - sums[0]); }
  void prepare(device& d) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;

private:
  float margin_;
  buffer losses_, right_;
};

} // namespace cudnn
