// SPDX-License-Identifier: Apache-2.0
//
// Defect: the loss has no terms.
#pragma once

#include "opened.hpp"

namespace {

struct counts_no_terms : opened {
  using opened::opened;
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    rg_step_result result = linear_regression::step(batch, hooks);
    result.count = 0;
    return result;
  }
};

} // namespace
