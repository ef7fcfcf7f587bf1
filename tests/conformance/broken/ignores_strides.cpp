// SPDX-License-Identifier: Apache-2.0
//
// Nodes are read as an array of this interface: those of a later one are longer.
#include "interpreted.hpp"

#include <cstring>

namespace {

struct executor : broken::runs<broken::interpreted> {
  static std::unique_ptr<model> compile(const rg_host*, const parameters&, const rg_graph& graph,
                                        const rg_model_setup& setup) {
    if (rg::at_stride(graph.nodes, 0).struct_size != sizeof(rg_node)) {
      rg_graph misread = graph;
      std::vector<rg_node> nodes(graph.node_count);
      std::memcpy(nodes.data(), graph.nodes, nodes.size() * sizeof(rg_node));
      for (std::size_t k = 1; k < nodes.size(); ++k)
        if (nodes[k].struct_size != nodes[0].struct_size) throw rg::error(RG_E_CONFIG, "node 1 is none");
      misread.nodes = nodes.data();
      return make(misread, setup);
    }
    return make(graph, setup);
  }
};

} // namespace

RG_PLUGIN("ignores_strides", "1.0", rg::executor<executor>("ignores_strides", "broken: strides"))
