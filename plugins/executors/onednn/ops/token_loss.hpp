// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/program.hpp"

namespace onednn {

// Softmax and cross-entropy over a vocabulary at every position of a sequence of logits. `smoothing` is the part of the
// target's probability that is spread evenly over the vocabulary. `labels` is an input of type RG_I32; positions with
// label 0 are ignored. The metric is masked accuracy if `accuracy`, else perplexity. forward() throws RG_E_OPERATION
// for a label outside of the vocabulary.
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
  std::vector<double> losses_, plain_losses_; // by row
  std::vector<float> shifts_;                 // log of the sum of exponentials, by row
};

} // namespace onednn
