// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "program.hpp"

namespace onednn {

// Softmax and cross-entropy over a vocabulary at every position, with label smoothing. Positions with label 0 are
// ignored.
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
