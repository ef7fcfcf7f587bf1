// SPDX-License-Identifier: Apache-2.0
//
// The formula of one optimizer, for ranges of the arena (optimizer.hpp) and rows of a sparse table (table.hpp). g is
// the gradient that the strategy applies, scaled by the clip factor; synchronous strategies apply the sum over all
// workers (losses are already divided by the global batch). w is the weight. lr is optimizer.lr, times the tensor's
// lr_scale, times the number of workers with lr_scaling = "linear", times the schedule's factor for the gradient's step
// (schedule.hpp):
//
//   all        g += weight_decay * the tensor's decay * w                (L2 added to the gradient, like the SGD of
//                                                                         Paddle, TensorFlow and PyTorch; not AdamW)
//   sgd        w -= lr * g
//   momentum   v = momentum * v + g;  w -= lr * v                        Nesterov: w -= lr * (g + momentum * v)
//   adagrad    h += g * g;            w -= lr * g / (sqrt(h) + epsilon)
//   adam       m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g * g       (Kingma and Ba, 2015)
//              w -= lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
//
// t counts, from 1, how often an element was updated, this update included. All state starts at 0. All functions [any].
#pragma once

#include "memory/arithmetic.hpp"
#include "optimizer/kernels.hpp"
#include "optimizer/schedule.hpp"

#include <cstdint>
#include <optional>

namespace regatta {

struct optimizer_config; // experiment/experiment.hpp

class update_rule {
public:
  using coefficients = optimizer_kernels::coefficients;

  // `workers` is the number of workers of the run, for lr_scaling. `config` is copied. Throws failure (usage), which
  // names the key, for an unknown optimizer or lr_scaling, an invalid schedule, or an epsilon of adagrad or adam that
  // is not above 0 in fp32.
  update_rule(const optimizer_config& config, std::int64_t workers);

  int states() const noexcept { return states_; }                   // floats of state per element: 0, 1 or 2
  bool counts_updates() const noexcept { return kind_ == RG_ADAM; } // the update depends on t
  // clips() returns whether optimizer.clip_norm is set: an update then needs the norm of the whole gradient first.
  // clip() returns the factor on gradients for that norm, at most 1; std::nullopt if the update must be skipped because
  // the gradient or its norm is not finite. clip() requires clips().
  bool clips() const noexcept { return clip_norm_ > 0; }
  std::optional<double> clip(const arithmetic::norm& total) const noexcept;

  // correction() returns Adam's bias corrections for t >= 1, as factors on lr and on epsilon. For other rules, which
  // ignore t, both are 1.
  struct bias_correction {
    double lr = 1, epsilon = 1;
  };
  bias_correction correction(std::uint64_t t) const noexcept;
  // Returns the learning rate of a step (counted from 0): with lr_scaling and the schedule's factor, without lr_scale.
  double lr(std::uint64_t step) const noexcept { return lr_ * schedule_.at(step); }
  // Returns the constants for elements that share all arguments: `lr` from lr(), `correction` from correction(t),
  // `factor` from clip() (1 without clipping), `decay` and `lr_scale` of the tensor. The state pointers a and b are
  // null: set them.
  coefficients of(double lr, const bias_correction& correction, double factor, float decay,
                  float lr_scale) const noexcept;

private:
  rg_rule kind_ = RG_SGD;
  int states_ = 0;
  schedule schedule_;
  double lr_, momentum_, weight_decay_, beta1_, beta2_, epsilon_, clip_norm_;
};

} // namespace regatta
