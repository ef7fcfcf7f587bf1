// SPDX-License-Identifier: Apache-2.0
#include "ops/squeeze_excite.hpp"

#include "runtime/memory_plan.hpp"

#include <algorithm>

namespace onednn {

void channel_scale::plan(memory_plan& m) {
  inputs_[0].from->kept = inputs_[1].from->kept = true;
  batch_ = m.batch();
}

void channel_scale::forward(run&) {
  const value& in = *inputs_[0].from;
  const std::size_t lanes = dev_.kernels->lanes;
  for_channel_blocks(dev_, batch_, in, [&](std::size_t at, std::size_t channel) {
    const float *x = in.data + at, *s = inputs_[1].from->data + channel;
    float* y = output_->data + at;
    for (std::size_t i = 0; i < in.spatial(); ++i)
      for (std::size_t l = 0; l < lanes; ++l) y[i * lanes + l] = x[i * lanes + l] * s[l];
  });
}

void channel_scale::backward(run&) {
  const value& in = *inputs_[0].from;
  const std::size_t lanes = dev_.kernels->lanes;
  for_channel_blocks(dev_, batch_, in, [&](std::size_t at, std::size_t channel) {
    const float *x = in.data + at, *dy = output_->gradient + at, *s = inputs_[1].from->data + channel;
    if (float* ds = inputs_[1].gradient) {
      std::fill_n(ds + channel, lanes, 0.0F);
      for (std::size_t i = 0; i < in.spatial(); ++i)
        for (std::size_t l = 0; l < lanes; ++l) ds[channel + l] += dy[i * lanes + l] * x[i * lanes + l];
    }
    if (float* dx = inputs_[0].gradient ? inputs_[0].gradient + at : nullptr)
      for (std::size_t i = 0; i < in.spatial(); ++i)
        for (std::size_t l = 0; l < lanes; ++l) dx[i * lanes + l] = dy[i * lanes + l] * s[l];
  });
}

} // namespace onednn
