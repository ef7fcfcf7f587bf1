// SPDX-License-Identifier: Apache-2.0
//
// A model names the input of positions as that of its tokens. The op of its own keeps other executors away.
#include "interpreted.hpp"

namespace {

struct executor : broken::runs<broken::interpreted> {
  static std::unique_ptr<model> compile(const rg_host*, const parameters&, const rg_graph& graph,
                                        const rg_model_setup& setup) {
    broken::plain_graph plain(graph);
    for (rg_node& n : plain.nodes)
      if (std::string_view(n.op) == "regatta_test.relu") n.op = "relu";
    return make(plain.graph, setup);
  }
};

struct selecting {
  struct parameters {};
  void build(rg::network& net, const parameters&) const {
    const rg::value words = net.indices("words", {9}, 20), chosen = net.indices("chosen", {4}, 9),
                    labels = net.indices("labels", {4}, 20);
    net.tokens(chosen);
    const rg::value x = rg::embedding(words, "embedding", rg::embedding_table(net, "table", 20, 6));
    const rg::value taken = rg::select_positions(x, chosen);
    const rg::value y = net.node("regatta_test.relu", "", {taken}, {}, {}, {4, 6});
    rg::token_cross_entropy(rg::dense(y, "out", 20), labels);
  }
};

} // namespace

RG_PLUGIN("tokens_of_positions", "1.0", rg::executor<executor>("tokens_of_positions", "an op of its own"),
          rg::graph_model<selecting>("selecting", "broken: positions are no tokens"))
