// SPDX-License-Identifier: Apache-2.0
//
// Defect: an op that it lacks is an error of the graph, so that no other executor is asked.
#pragma once

#include "../interpreted.hpp"

#include <memory>

namespace {

using namespace broken;

struct blames_the_graph : sound {
  static std::unique_ptr<model> compile(const rg_host*, const parameters&, const rg_graph& graph,
                                        const rg_model_setup& setup) {
    try {
      return make(graph, setup);
    } catch (const rg::error& e) {
      throw rg::error(RG_E_CONFIG, e.what());
    }
  }
};

} // namespace
