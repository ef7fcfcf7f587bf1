// SPDX-License-Identifier: Apache-2.0
//
// Defect: ready() is called before the gradients are there.
#pragma once

#include "opened.hpp"

namespace {

struct ready_too_early : opened {
  using opened::opened;
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    hooks.need(1);
    hooks.need(0);
    say_ready(batch, hooks);
    return quiet_step(batch, hooks);
  }
};

} // namespace
