// SPDX-License-Identifier: Apache-2.0
#include "optimizer/rule.hpp"

#include "base/failure.hpp"
#include "experiment/experiment.hpp"

#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <regatta/plugin.hpp>

namespace regatta {

update_rule::update_rule(const optimizer_config& config, std::int64_t workers)
    : schedule_(config.schedule), lr_(config.lr), momentum_(config.momentum), weight_decay_(config.weight_decay),
      beta1_(config.beta1), beta2_(config.beta2), epsilon_(config.epsilon), clip_norm_(config.clip_norm) {
  const auto& name = config.plugin;
  if (name == "momentum") {
    kind_ = config.nesterov ? RG_NESTEROV : RG_MOMENTUM;
    states_ = 1;
  } else if (name == "adagrad") {
    kind_ = RG_ADAGRAD;
    states_ = 1;
  } else if (name == "adam") {
    kind_ = RG_ADAM;
    states_ = 2;
  } else if (name != "sgd") {
    throw failure(exit_code::usage,
                  fmt::format("optimizer.plugin: no \"{}\"; there are sgd, momentum, adagrad and adam", name));
  }
  // If a weight and its gradient are always 0 (padding), 0 / (0 + epsilon) must be 0.
  if ((kind_ == RG_ADAGRAD || kind_ == RG_ADAM) && !(static_cast<float>(epsilon_) > 0))
    throw failure(exit_code::usage, fmt::format("optimizer.epsilon: expected a number above 0, got {}", epsilon_));
  if (config.lr_scaling == "linear")
    lr_ *= static_cast<double>(workers);
  else if (config.lr_scaling != "none")
    throw failure(exit_code::usage,
                  fmt::format("optimizer.lr_scaling: expected none or linear, got \"{}\"", config.lr_scaling));
}

std::optional<double> update_rule::clip(const arithmetic::norm& total) const noexcept {
  if (total.not_finite != 0 || !std::isfinite(total.sum_of_squares)) return std::nullopt;
  const double length = std::sqrt(total.sum_of_squares);
  return length > clip_norm_ ? clip_norm_ / length : 1;
}

update_rule::bias_correction update_rule::correction(std::uint64_t t) const noexcept {
  if (!counts_updates()) return {};
  // m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon), the fraction expanded by sqrt(1 - beta2^t)
  const double root = std::sqrt(1 - std::pow(beta2_, static_cast<double>(t)));
  return {root / (1 - std::pow(beta1_, static_cast<double>(t))), root};
}

update_rule::coefficients update_rule::of(double lr, const bias_correction& correction, double factor, float decay,
                                          float lr_scale) const noexcept {
  auto c = rg::make_versioned<coefficients>();
  c.rule = kind_;
  c.factor = static_cast<float>(factor);
  c.decay = static_cast<float>(weight_decay_ * static_cast<double>(decay));
  c.lr = static_cast<float>(lr * correction.lr * static_cast<double>(lr_scale));
  c.first = static_cast<float>(kind_ == RG_ADAM ? beta1_ : momentum_);
  c.second = static_cast<float>(beta2_);
  c.one_minus_first = static_cast<float>(1 - beta1_);
  c.one_minus_second = static_cast<float>(1 - beta2_);
  c.epsilon = static_cast<float>(epsilon_ * correction.epsilon);
  return c;
}

} // namespace regatta
