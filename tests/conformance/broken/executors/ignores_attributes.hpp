// SPDX-License-Identifier: Apache-2.0
//
// Defect: attributes that it does not know are ignored in place of refused.
#pragma once

#include "../interpreted.hpp"

#include <memory>
#include <vector>

namespace {

using namespace broken;

struct ignores_attributes : sound {
  static std::unique_ptr<model> compile(const rg_host*, const parameters&, const rg_graph& graph,
                                        const rg_model_setup& setup) {
    plain_graph plain(graph);
    std::vector<rg_node>& nodes = plain.nodes;
    std::vector<std::vector<rg_attr>> known(nodes.size());
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      for (std::uint32_t i = 0; i < nodes[k].attr_count; ++i)
        for (const rg::op_attributes& o : reference::known_attributes)
          if (o.op == nodes[k].op && o.has(nodes[k].attrs[i].name)) known[k].push_back(nodes[k].attrs[i]);
      nodes[k].attrs = known[k].data();
      nodes[k].attr_count = static_cast<std::uint32_t>(known[k].size());
    }
    return make(plain.graph, setup);
  }
};

} // namespace
