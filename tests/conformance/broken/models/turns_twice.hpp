// SPDX-License-Identifier: Apache-2.0
//
// Defect: canonical() and from_canonical() apply the same permutation.
#pragma once

#include "opened.hpp"

namespace {

struct turns_twice : opened {
  using opened::opened;
  void canonical(std::uint32_t tensor, const float* memory, float* out) {
    const std::size_t n = tensor ? count : 1;
    for (std::size_t i = 0; i < n; ++i) out[i] = memory[(i + 1) % n];
  }
  void from_canonical(std::uint32_t tensor, const float* values, float* memory) { canonical(tensor, values, memory); }
};

} // namespace
