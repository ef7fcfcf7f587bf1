// SPDX-License-Identifier: Apache-2.0
#include "ops/squeeze_excite.hpp"

#include "kernels/squeeze_excite.hpp"

namespace cudnn {

void channel_scale::forward(device& d, const run&) {
  kernels::scale_channels(d.stream, d.computes.type, output_->layout, x(0), x(1), y(), batch, false);
}

void channel_scale::backward(device& d, const run&) {
  const image_layout& p = output_->layout;
  if (dx(1)) kernels::scale_channels_factors(d.stream, d.computes.type, p, x(0), dy(), dx(1), batch, inputs_[1].add);
  if (dx(0)) kernels::scale_channels(d.stream, d.computes.type, p, dy(), x(1), dx(0), batch, inputs_[0].add);
}

} // namespace cudnn
