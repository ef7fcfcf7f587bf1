// SPDX-License-Identifier: Apache-2.0
//
// Defect: the gradient of the weight is 5 % too large.
#pragma once

#include "opened.hpp"

namespace {

struct five_percent_in_weight : opened {
  using opened::opened;
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    const rg_step_result result = quiet_step(batch, hooks);
    for (std::size_t i = 0; i < count; ++i) gradient[i] *= 1.05F;
    say_ready(batch, hooks);
    return result;
  }
};

} // namespace
