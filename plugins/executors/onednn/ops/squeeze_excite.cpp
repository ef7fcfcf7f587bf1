// SPDX-License-Identifier: Apache-2.0
#include "ops/squeeze_excite.hpp"

#include "runtime/memory_plan.hpp"

#include <cmath>

namespace onednn {

namespace {

// Calls f(at, channel) for each block of every sample: `at` is the offset of the block's elements in an image,
// `channel` that of its lanes in a vector of features.
template <class F> void each_block(const device& dev, std::size_t batch, const value& map, const F& f) {
  const std::size_t block = map.spatial() * dev.kernels->lanes, blocks = map.stride / block;
  parallel(dev, batch * blocks, [&](std::size_t i) { f(i * block, i * dev.kernels->lanes); });
}

float logistic(float x) {
  return 1 / (1 + std::exp(-x));
}

} // namespace

void global_average::plan(memory_plan& m) {
  batch_ = m.batch();
}

void global_average::forward(run&) {
  const value& in = *inputs_[0].from;
  const std::size_t lanes = dev_.kernels->lanes;
  const float inverse_count = 1.0F / static_cast<float>(in.spatial());
  each_block(dev_, batch_, in, [&](std::size_t at, std::size_t channel) {
    const float* x = in.data + at;
    float* y = output_->data + channel;
    std::fill_n(y, lanes, 0.0F);
    for (std::size_t i = 0; i < in.spatial(); ++i)
      for (std::size_t l = 0; l < lanes; ++l) y[l] += x[i * lanes + l];
    for (std::size_t l = 0; l < lanes; ++l) y[l] *= inverse_count;
  });
}

void global_average::backward(run&) {
  if (!inputs_[0].gradient) return;
  const value& in = *inputs_[0].from;
  const std::size_t lanes = dev_.kernels->lanes;
  const float inverse_count = 1.0F / static_cast<float>(in.spatial());
  each_block(dev_, batch_, in, [&](std::size_t at, std::size_t channel) {
    float* dx = inputs_[0].gradient + at;
    const float* dy = output_->gradient + channel;
    for (std::size_t i = 0; i < in.spatial(); ++i)
      for (std::size_t l = 0; l < lanes; ++l) dx[i * lanes + l] = dy[l] * inverse_count;
  });
}

void sigmoid::plan(memory_plan& m) {
  inputs_[0].from->kept = true;
  count_ = m.batch() * output_->stride;
}

void sigmoid::forward(run&) {
  const float* x = inputs_[0].from->data;
  for (std::size_t i = 0; i < count_; ++i) output_->data[i] = logistic(x[i]);
}

void sigmoid::backward(run&) {
  if (!inputs_[0].gradient) return;
  const float *x = inputs_[0].from->data, *dy = output_->gradient;
  for (std::size_t i = 0; i < count_; ++i) {
    const float y = logistic(x[i]);
    inputs_[0].gradient[i] = dy[i] * y * (1 - y);
  }
}

void channel_scale::plan(memory_plan& m) {
  inputs_[0].from->kept = inputs_[1].from->kept = true;
  batch_ = m.batch();
}

void channel_scale::forward(run&) {
  const value& in = *inputs_[0].from;
  const std::size_t lanes = dev_.kernels->lanes;
  each_block(dev_, batch_, in, [&](std::size_t at, std::size_t channel) {
    const float *x = in.data + at, *s = inputs_[1].from->data + channel;
    float* y = output_->data + at;
    for (std::size_t i = 0; i < in.spatial(); ++i)
      for (std::size_t l = 0; l < lanes; ++l) y[i * lanes + l] = x[i * lanes + l] * s[l];
  });
}

void channel_scale::backward(run&) {
  const value& in = *inputs_[0].from;
  const std::size_t lanes = dev_.kernels->lanes;
  each_block(dev_, batch_, in, [&](std::size_t at, std::size_t channel) {
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
