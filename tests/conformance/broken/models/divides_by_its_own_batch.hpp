// SPDX-License-Identifier: Apache-2.0
//
// Defect: gradients are divided by the samples of this worker, not of all.
#pragma once

#include "opened.hpp"

namespace {

struct divides_by_its_own_batch : opened {
  using opened::opened;
  rg_step_result step(rg_batch batch, const rg::hooks& hooks) {
    batch.global_samples = batch.samples;
    return linear_regression::step(batch, hooks);
  }
};

} // namespace
