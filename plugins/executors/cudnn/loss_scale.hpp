// SPDX-License-Identifier: Apache-2.0
//
// What the loss is multiplied by, so that small gradients do not vanish in fp16: as large as lets them stay finite
// (Micikevicius et al., "Mixed precision training", 2018, section 3.2).
#pragma once

#include <algorithm>
#include <cstdint>

namespace cudnn {

class loss_scale {
public:
  float value() const { return value_; }
  // After each step: halved where its gradients were not finite (the engine then leaves the weights as they are), doubled
  // after 2000 steps in which they were. Steps already under way keep the scale that they began with.
  void update(bool finite) {
    if (!finite) {
      value_ = std::max(1.0F, value_ / 2);
      good_ = 0;
    } else if (++good_ == steps_to_grow) {
      value_ = std::min(most, value_ * 2);
      good_ = 0;
    }
  }
  static constexpr std::uint32_t steps_to_grow = 2000;
  static constexpr float most = 0x1p24F;

private:
  float value_ = 0x1p16F;
  std::uint32_t good_ = 0;
};

} // namespace cudnn
