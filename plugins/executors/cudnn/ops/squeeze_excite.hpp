// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/program.hpp"

namespace cudnn {

// Multiplies each element of the first input, an image, by the factor of its sample and channel. The second input holds
// the factors, one element per channel and sample. The compiler checks the shapes.
class channel_scale : public op {
public:
  using op::op;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
};

} // namespace cudnn
