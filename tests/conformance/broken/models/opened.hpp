// SPDX-License-Identifier: Apache-2.0
//
// Correct: the example, whose gradients derived classes can change.
#pragma once

#include "../regression.hpp"

namespace {

struct opened : linear_regression {
  using linear_regression::linear_regression;
  void bind(const rg_model_memory& memory) {
    linear_regression::bind(memory);
    bias = rg::gradients_of(memory, 0);
    gradient = rg::gradients_of(memory, 1);
    count = 32;
  }
  // The step without its calls of ready(); say_ready() makes them.
  rg_step_result quiet_step(rg_batch batch, const rg::hooks& hooks) {
    batch.flags &= ~static_cast<std::uint32_t>(RG_BATCH_LAST);
    return linear_regression::step(batch, hooks);
  }
  static void say_ready(const rg_batch& batch, const rg::hooks& hooks) {
    if (batch.flags & RG_BATCH_LAST) hooks.ready(1);
  }
  float *bias = nullptr, *gradient = nullptr;
  std::size_t count = 0;
};

} // namespace
