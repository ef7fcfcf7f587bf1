// SPDX-License-Identifier: Apache-2.0
#include "ops/cosine.hpp"

#include "kernels/cosine.hpp"

namespace cudnn {

void cosine::prepare(device&) {
  sizes_.reserve(3 * batch * sizeof(float));
}

void cosine::forward(device& d, const run&) {
  kernels::cosine(d.stream, d.computes.type, x(0), x(1), y(), sizes_.get(), batch,
                  static_cast<std::uint32_t>(inputs_[0].from->elements()));
}

void cosine::backward(device& d, const run&) {
  for (std::size_t i = 0; i < 2; ++i)
    if (dx(i))
      kernels::cosine_gradient(d.stream, d.computes.type, x(i), x(1 - i), dy(), sizes_.get(), i == 1, dx(i), batch,
                               static_cast<std::uint32_t>(inputs_[0].from->elements()), inputs_[i].add);
}

} // namespace cudnn
