// SPDX-License-Identifier: Apache-2.0
//
// Defect: the same step gives another gradient each other time.
#pragma once

#include "opened.hpp"

namespace {

struct differs_a_little : opened {
  using opened::opened;
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    const rg_step_result result = quiet_step(batch, hooks);
    gradient[0] *= 1 + 1e-6F * static_cast<float>(++calls_ % 2);
    say_ready(batch, hooks);
    return result;
  }
  std::uint64_t calls_ = 0;
};

} // namespace
