// SPDX-License-Identifier: Apache-2.0
//
// No defect: it lacks all ops.
#pragma once

#include "../interpreted.hpp"

#include <memory>

namespace {

using namespace broken;

struct has_nothing : sound {
  static std::unique_ptr<model> compile(const rg_host*, const parameters&, const rg_graph&, const rg_model_setup&) {
    throw rg::error(RG_E_UNSUPPORTED, "it has no op dense");
  }
};

} // namespace
