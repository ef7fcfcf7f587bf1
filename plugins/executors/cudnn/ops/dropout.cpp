// SPDX-License-Identifier: Apache-2.0
#include "ops/dropout.hpp"

#include "kernels/elementwise.hpp"

#include <cmath>

namespace cudnn {

void dropout_seed::vary(const rg_batch& b) const {
  if (!numbers_.there()) return;
  numbers_.host()[0] = rg::derive_seed(b.seed, b.step, layer_, rg::stream_dropout);
  numbers_.host()[1] = b.first_sample;
}

kernels::dropout_args dropout_seed::of(const run& r) const {
  if (!r.training || p_ <= 0) return {nullptr, nullptr, 0, 1};
  return {.seed = numbers_.device(),
          .first = numbers_.device() + 1,
          .threshold = static_cast<std::uint32_t>(std::lround(p_ * 65536)),
          .scale = static_cast<float>(1 / (1 - p_))};
}

void dropout::forward(device& d, const run& r) {
  if (r.training)
    kernels::dropout(d.stream, d.computes.type, dropout_.of(r), output_->layout, x(), y(), batch, false);
  else
    kernels::copy(d.stream, d.computes.type, x(), y(), all(), false);
}

void dropout::backward(device& d, const run& r) {
  if (dx())
    kernels::dropout(d.stream, d.computes.type, dropout_.of(r), output_->layout, dy(), dx(), batch, inputs_[0].add);
}

} // namespace cudnn
