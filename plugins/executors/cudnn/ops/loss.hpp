// SPDX-License-Identifier: Apache-2.0
//
// The losses of networks. cross_entropy and auc_cross_entropy have one label per sample, token_cross_entropy one per
// position; vary() of all three throws rg::error, RG_E_OPERATION, for a label that is no class.
#pragma once

#include "kernels/loss.hpp"
#include "runtime/program.hpp"

namespace cudnn {

// Softmax and cross-entropy over the classes of a sample; the metric is top1.
class cross_entropy : public loss {
public:
  cross_entropy(std::string name, value* logits, value* labels, value* out)
      : loss(std::move(name), {logits, labels}, out, executors::top1()) {}
  void prepare(device& d) override;
  void vary(const run& r) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
  std::size_t held() const override { return shifts_.bytes(); }

protected:
  // For token_cross_entropy: one label for each row of `classes` logits; labels equal to `ignored` do not count.
  cross_entropy(std::string name, value* logits, value* labels, value* out, std::uint32_t classes, std::int32_t ignored,
                double smoothing, bool accuracy)
      : loss(std::move(name), {logits, labels}, out, executors::of_tokens(accuracy),
             {labels->input, labels->elements()}),
        classes_(classes), ignored_(ignored), smoothing_(static_cast<float>(smoothing)) {}
  // Returns the number of rows of logits, one per label; what() returns the kernels' description of them.
  std::size_t rows(std::size_t samples) const { return samples * inputs_[1].from->elements(); }
  kernels::cross_entropy_args what(std::size_t samples) const {
    return {rows(samples), classes_ ? classes_ : static_cast<std::uint32_t>(inputs_[0].from->elements()),
            inputs_[1].from->indices(), ignored_, smoothing_};
  }
  std::uint32_t classes_ = 0; // 0: as many as there are logits
  std::int32_t ignored_ = -1;
  float smoothing_ = 0;
  buffer losses_, plain_, shifts_, right_; // per row
};

// Cross-entropy over a vocabulary at every position, with label smoothing; labels of 0 do not count. The metric is the
// accuracy if `accuracy`, else the perplexity.
class token_cross_entropy : public cross_entropy {
public:
  token_cross_entropy(std::string name, value* logits, value* labels, value* out, double smoothing, bool accuracy)
      : cross_entropy(std::move(name), logits, labels, out, features(*logits), 0, smoothing, accuracy) {}
  void vary(const run& r) override;
  void forward(device& d, const run& r) override;
};

// Softmax and cross-entropy over two classes. The metric is the area under the ROC curve, from a histogram of `buckets`
// probabilities per class.
class auc_cross_entropy : public loss {
public:
  auc_cross_entropy(std::string name, value* logits, value* label, value* out, std::size_t buckets)
      : loss(std::move(name), {logits, label}, out, executors::area_under_curve(buckets)),
        buckets_(static_cast<std::uint32_t>(buckets)) {}
  void prepare(device& d) override;
  void vary(const run& r) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
  std::size_t held() const override { return wrong_.bytes(); }

private:
  std::uint32_t buckets_;
  buffer losses_, wrong_, histogram_;
};

// max(0, margin - positive + negative) of two scores per sample. The metric is the number of pairs with positive >
// negative divided by the number of the others, or by 1 if there is none.
class pairwise_hinge : public loss {
public:
  pairwise_hinge(std::string name, value* positive, value* negative, value* out, double margin)
      : loss(std::move(name), {positive, negative}, out, executors::pairs_in_order()),
        margin_(static_cast<float>(margin)) {}
  void prepare(device& d) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;

private:
  float margin_;
  buffer losses_, right_;
};

} // namespace cudnn
