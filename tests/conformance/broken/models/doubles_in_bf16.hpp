// SPDX-License-Identifier: Apache-2.0
//
// Supports bf16. Defect: doubles a gradient there.
#pragma once

#include "opened.hpp"

namespace {

struct doubles_in_bf16 : opened {
  doubles_in_bf16(const rg_host* host, const parameters& p, const rg_model_setup& setup)
      : opened(host, p, in_fp32(setup)), half_(setup.precision == RG_BF16) {}
  static rg_model_setup in_fp32(rg_model_setup setup) {
    if (setup.precision == RG_BF16) setup.precision = RG_F32;
    return setup;
  }
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    const rg_step_result result = quiet_step(batch, hooks);
    for (std::size_t i = 0; i < count && half_; ++i) gradient[i] *= 2;
    say_ready(batch, hooks);
    return result;
  }
  bool half_;
};

} // namespace
