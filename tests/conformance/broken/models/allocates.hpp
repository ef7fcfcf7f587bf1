// SPDX-License-Identifier: Apache-2.0
//
// Defect: each step allocates memory.
#pragma once

#include "opened.hpp"

#include <vector>

namespace {

struct allocates : opened {
  using opened::opened;
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    scratch_ = std::vector<float>(10'000 + batch.samples);
    return linear_regression::step(batch, hooks);
  }
  std::vector<float> scratch_;
};

} // namespace
