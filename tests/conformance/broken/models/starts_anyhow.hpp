// SPDX-License-Identifier: Apache-2.0
//
// Defect: init() gives other weights for the same seed each time.
#pragma once

#include "opened.hpp"

#include <span>

namespace {

struct starts_anyhow : opened {
  using opened::opened;
  void init(std::uint32_t tensor, std::span<const std::uint64_t> rows, std::uint64_t seed, std::span<float> out) {
    linear_regression::init(tensor, rows, seed + calls_++, out);
  }
  std::uint64_t calls_ = 0;
};

} // namespace
