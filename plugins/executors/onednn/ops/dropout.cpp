// SPDX-License-Identifier: Apache-2.0
#include "ops/dropout.hpp"

#include <regatta/random.hpp>

#include <cmath>

namespace onednn {

std::size_t mask_bytes(std::size_t elements) {
  return blocks(elements, 8) + 8;
}

dropout_draw::dropout_draw(const run& r, double p, std::uint32_t layer)
    : seed(rg::derive_seed(r.batch->seed, r.batch->step, layer, rg::stream_dropout)),
      threshold(static_cast<std::uint32_t>(std::lround(p * 65536))) {}

} // namespace onednn
