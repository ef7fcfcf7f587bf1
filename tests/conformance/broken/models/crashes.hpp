// SPDX-License-Identifier: Apache-2.0
//
// Defect: a step ends the process by SIGSEGV.
#pragma once

#include "opened.hpp"

#include <csignal>

namespace {

struct crashes : opened {
  using opened::opened;
  rg_step_result step(const rg_batch&, const rg::hooks&) {
    std::raise(SIGSEGV);
    return {};
  }
};

} // namespace
