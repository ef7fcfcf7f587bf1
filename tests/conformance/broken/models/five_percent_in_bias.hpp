// SPDX-License-Identifier: Apache-2.0
//
// Defect: the gradient of the bias is 5 % too small.
#pragma once

#include "opened.hpp"

namespace {

struct five_percent_in_bias : opened {
  using opened::opened;
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    const rg_step_result result = quiet_step(batch, hooks);
    *bias *= 0.95F;
    say_ready(batch, hooks);
    return result;
  }
};

} // namespace
