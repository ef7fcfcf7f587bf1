// SPDX-License-Identifier: Apache-2.0
//
// Defect: half of the gradient of the weight is 0.
#pragma once

#include "opened.hpp"

#include <algorithm>

namespace {

struct wrong_gradient : opened {
  using opened::opened;
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    const rg_step_result result = quiet_step(batch, hooks);
    std::fill_n(gradient, count / 2, 0.0F);
    say_ready(batch, hooks);
    return result;
  }
};

} // namespace
