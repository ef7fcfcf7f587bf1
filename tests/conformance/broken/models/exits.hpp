// SPDX-License-Identifier: Apache-2.0
//
// Defect: a step ends the process by exit code 3.
#pragma once

#include "opened.hpp"

#include <cstdlib>

namespace {

struct exits : opened {
  using opened::opened;
  rg_step_result step(const rg_batch&, const rg::hooks&) { std::_Exit(3); }
};

} // namespace
