// SPDX-License-Identifier: Apache-2.0
//
// No defect: it lacks an op.
#pragma once

#include "../interpreted.hpp"

#include <memory>

namespace {

using namespace broken;

struct has_no_convolution : sound {
  static std::unique_ptr<model> compile(const rg_host*, const parameters&, const rg_graph& graph,
                                        const rg_model_setup& setup) {
    if (has_op(graph, "conv2d")) throw rg::error(RG_E_UNSUPPORTED, "layer c: it has no op conv2d");
    return make(graph, setup);
  }
};

} // namespace
