// SPDX-License-Identifier: Apache-2.0
//
// An op that it lacks is refused without the words "no op NAME".
#include "interpreted.hpp"

namespace {

struct executor : broken::runs<broken::interpreted> {
  static std::unique_ptr<model> compile(const rg_host*, const parameters&, const rg_graph& graph,
                                        const rg_model_setup& setup) {
    try {
      return make(graph, setup);
    } catch (const rg::error& e) {
      const std::string text = e.what();
      throw rg::error(RG_E_UNSUPPORTED, "unknown op " + text.substr(text.rfind(' ') + 1));
    }
  }
};

} // namespace

RG_PLUGIN("omits_no_op", "1.0", rg::executor<executor>("omits_no_op", "broken: the text of a refusal"))
