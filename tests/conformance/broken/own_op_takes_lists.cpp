// SPDX-License-Identifier: Apache-2.0
//
// Nothing wrong: an executor with an op of its own that has a list and a text as attributes, and a model that has the
// op.
#include "interpreted.hpp"

namespace {

struct executor : broken::runs<broken::interpreted> {
  static std::unique_ptr<model> compile(const rg_host*, const parameters&, const rg_graph& graph,
                                        const rg_model_setup& setup) {
    static constexpr rg::op_attributes known[] = {
        {"regatta_test.clamp", {"factor"}, {"bounds", "pivots"}, {"outside"}}};
    rg::refuse_unknown_attributes(graph, known);
    broken::plain_graph plain(graph);
    for (rg_node& n : plain.nodes)
      if (std::string_view(n.op) == "regatta_test.clamp") {
        // One clamp is known here, that of a ReLU.
        const auto all = std::span(n.attrs, n.attr_count);
        const bool sound = all.size() == 4 && all[0].number == 1 && all[1].count == 2 && all[1].numbers[0] == 0 &&
                           all[1].numbers[1] == 1e30 && all[2].count == 0 && std::string_view(all[3].text) == "nearest";
        if (!sound) throw rg::error(RG_E_CONFIG, "expected the bounds [0, 1e30], without pivots, and \"nearest\"");
        n.op = "relu";
        n.attr_count = 0;
      }
    return make(plain.graph, setup);
  }
};

struct clamped {
  struct parameters {};
  void build(rg::network& net, const parameters&) const {
    const rg::value x = net.values("x", {6}), label = net.index("label", 5);
    const rg::value clamp = net.node(
        "regatta_test.clamp", "clamp", {rg::dense(x, "before", 7)}, {},
        {{"factor", 1}, {"bounds", {0, 1e30}}, {"pivots", std::vector<double>{}}, {"outside", "nearest"}}, {7});
    rg::softmax_cross_entropy(rg::dense(clamp, "classes", 5), label);
  }
};

} // namespace

RG_PLUGIN("own_op_takes_lists", "1.0",
          rg::executor<executor>("own_op_takes_lists", "an op with a list and a text as attributes"),
          rg::graph_model<clamped>("clamped", "an op of an executor's own"))
