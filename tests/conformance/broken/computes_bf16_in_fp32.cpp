// SPDX-License-Identifier: Apache-2.0
//
// bf16 is accepted, and computed in fp32.
#include "interpreted.hpp"

namespace {

struct executor : broken::runs<broken::interpreted> {
  static std::unique_ptr<model> compile(const rg_host*, const parameters&, const rg_graph& graph,
                                        const rg_model_setup& setup) {
    rg_model_setup other = setup;
    other.precision = RG_F32;
    return make(graph, other);
  }
};

} // namespace

RG_PLUGIN("computes_bf16_in_fp32", "1.0", rg::executor<executor>("computes_bf16_in_fp32", "broken: precision"))
