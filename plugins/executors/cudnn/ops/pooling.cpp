// SPDX-License-Identifier: Apache-2.0
#include "ops/pooling.hpp"

#include "kernels/pooling.hpp"

namespace cudnn {

void pooling::prepare(device&) {
  if (!average_) positions_.reserve(all() * sizeof(std::int32_t));
}

void pooling::forward(device& d, const run&) {
  const image_layout &p = inputs_[0].from->layout, &q = output_->layout;
  if (average_)
    kernels::average_pool(d.stream, d.computes.type, window_, p, q, x(), y(), batch);
  else
    kernels::max_pool(d.stream, d.computes.type, window_, p, q, x(), y(), positions_.get<std::int32_t>(), batch);
}

void pooling::backward(device& d, const run&) {
  if (!dx()) return;
  const image_layout &p = inputs_[0].from->layout, &q = output_->layout;
  const bool add = inputs_[0].add;
  if (average_)
    kernels::average_pool_gradient(d.stream, d.computes.type, window_, p, q, dy(), dx(), batch, add);
  else
    kernels::max_pool_gradient(d.stream, d.computes.type, window_, p, q, dy(), positions_.get<std::int32_t>(), dx(),
                               batch, add);
}

} // namespace cudnn
