// SPDX-License-Identifier: Apache-2.0
//
// Defect: a step reads weights without need().
#pragma once

#include "opened.hpp"

namespace {

struct never_asks : opened {
  using opened::opened;
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    const rg_step_result result = quiet_step(batch, rg::hooks(nullptr));
    say_ready(batch, hooks);
    return result;
  }
};

} // namespace
