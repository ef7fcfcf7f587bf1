// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/program.hpp"

namespace onednn {

// Returns the bytes to allocate for a sample's dropout mask with `elements` bits, including 8 bytes behind it, because
// kernels load whole words.
std::size_t mask_bytes(std::size_t elements);

// The arguments of dropout_kernels::draw for one step and layer. `p` is the probability that an element becomes 0.
struct dropout_draw {
  std::uint64_t seed; // of step and layer
  std::uint32_t threshold;
  dropout_draw(const run& r, double p, std::uint32_t layer);
};

} // namespace onednn
