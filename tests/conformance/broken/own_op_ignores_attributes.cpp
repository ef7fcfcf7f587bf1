// SPDX-License-Identifier: Apache-2.0
//
// Attributes of an op of its own, `regatta_test.bend`, are not checked. The model has the op.
#include "interpreted.hpp"

namespace {

struct executor : broken::runs<broken::interpreted> {
  static std::unique_ptr<model> compile(const rg_host*, const parameters&, const rg_graph& graph,
                                        const rg_model_setup& setup) {
    broken::plain_graph plain(graph);
    for (rg_node& n : plain.nodes)
      if (std::string_view(n.op) == "regatta_test.bend") {
        n.op = "relu";
        n.attr_count = 0;
      }
    return make(plain.graph, setup);
  }
};

struct bent {
  struct parameters {};
  void build(rg::network& net, const parameters&) const {
    const rg::value x = net.values("x", {6}), label = net.index("label", 5);
    const rg::value bend = net.node("regatta_test.bend", "bend", {rg::dense(x, "before", 7)}, {}, {{"beta", 1}}, {7});
    rg::softmax_cross_entropy(rg::dense(bend, "classes", 5), label);
  }
};

} // namespace

RG_PLUGIN("own_op_ignores_attributes", "1.0",
          rg::executor<executor>("own_op_ignores_attributes", "broken: attributes of its own op"),
          rg::graph_model<bent>("bent", "an op of an executor's own"))
