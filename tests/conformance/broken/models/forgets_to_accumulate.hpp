// SPDX-License-Identifier: Apache-2.0
//
// Defect: a gradient is that of the last micro-batch, not of all.
#pragma once

#include "opened.hpp"

namespace {

struct forgets_to_accumulate : opened {
  using opened::opened;
  rg_step_result step(rg_batch batch, const rg::hooks& hooks) {
    batch.flags &= ~static_cast<std::uint32_t>(RG_BATCH_ACCUMULATE);
    return linear_regression::step(batch, hooks);
  }
};

} // namespace
