// SPDX-License-Identifier: Apache-2.0
#include "optimizer/schedule.hpp"

#include "base/failure.hpp"
#include "experiment/experiment.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

namespace regatta {
namespace {

void require(bool fine, const std::string& key, const std::string& expected) {
  if (!fine) throw failure(exit_code::usage, fmt::format("optimizer.schedule.{}: expected {}", key, expected));
}

} // namespace

schedule::schedule(const schedule_config& c)
    : warmup_(c.warmup), start_(c.start), length_(c.length), end_(c.end), every_(c.every), factor_(c.factor),
      scale_(1 / std::sqrt(static_cast<double>(c.model_size))), milestones_(c.milestones) {
  const std::string with = fmt::format(" with schedule.name = \"{}\"", c.name);
  if (c.name == "constant") {
    shape_ = shape::constant;
    if (c.warmup <= 0) return; // there are no lengths to convert
  } else if (c.name == "step") {
    shape_ = shape::step;
    require(!milestones_.empty(), "milestones", "at least one" + with);
    require(std::ranges::is_sorted(milestones_), "milestones", "ascending numbers");
  } else if (c.name == "linear") {
    shape_ = shape::linear;
    require(c.length > c.warmup, "length", "more than the warm-up" + with);
  } else if (c.name == "exponential") {
    shape_ = shape::exponential;
    require(c.every > 0, "every", "a number above 0" + with);
  } else if (c.name == "noam") {
    shape_ = shape::noam;
    require(c.warmup > 0, "warmup", "a number above 0" + with);
    require(c.model_size > 0, "model_size", "a number above 0" + with);
  } else {
    require(false, "name", fmt::format("constant, step, linear, exponential or noam, got \"{}\"", c.name));
  }
  if (c.unit == "epoch") {
    require(c.epoch_steps > 0, "unit", "\"step\": the data source has no end, and so no epochs");
    for (double* steps : {&warmup_, &length_, &every_}) *steps *= c.epoch_steps;
    for (double& m : milestones_) m *= c.epoch_steps;
  } else {
    require(c.unit == "step", "unit", fmt::format("step or epoch, got \"{}\"", c.unit));
  }
}

double schedule::at(std::uint64_t step) const noexcept {
  const auto t = static_cast<double>(step), n = t + 1;
  if (shape_ == shape::noam) return scale_ * std::min(1 / std::sqrt(n), n / (warmup_ * std::sqrt(warmup_)));
  if (n < warmup_) return start_ + (1 - start_) * n / warmup_;
  switch (shape_) {
  case shape::step:
    return std::pow(factor_, static_cast<double>(std::ranges::upper_bound(milestones_, t) - milestones_.begin()));
  case shape::linear: return 1 - (1 - end_) * std::clamp((n - warmup_) / (length_ - warmup_), 0.0, 1.0);
  case shape::exponential: return std::pow(factor_, std::floor(t / every_));
  default: return 1;
  }
}

} // namespace regatta
