// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/program.hpp"

namespace cudnn {

// Multiplies the first input, an image, by the second, which has one factor per sample and channel.
class channel_scale : public op {
public:
  using op::op;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
};

} // namespace cudnn
