// SPDX-License-Identifier: Apache-2.0
//
// The loss scale of fp16, which keeps small gradients from vanishing: as large as possible while gradients stay finite
// (Micikevicius et al., "Mixed precision training", 2018, section 3.2).
#pragma once

#include <algorithm>
#include <cstdint>

namespace cudnn {

class loss_scale {
public:
  // Returns the factor of the loss, a power of two from 1 to 2^24; at first 2^16.
  float value() const { return value_; }
  // Call once for each micro-batch, in order, when its gradients are known. `finite`: all were finite. Halves the scale
  // if not (the engine then skips the update), and doubles it after `steps_to_grow` finite ones in a row. Micro-batches
  // that are already running keep the scale with which they started.
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
