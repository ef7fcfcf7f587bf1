// SPDX-License-Identifier: Apache-2.0
//
// Defect: a gradient is NaN, the loss is finite.
#pragma once

#include "opened.hpp"

#include <limits>

namespace {

struct nan_in_bias : opened {
  using opened::opened;
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    const rg_step_result result = quiet_step(batch, hooks);
    *bias = std::numeric_limits<float>::quiet_NaN();
    say_ready(batch, hooks);
    return result;
  }
};

} // namespace
