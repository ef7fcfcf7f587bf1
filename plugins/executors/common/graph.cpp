// SPDX-License-Identifier: Apache-2.0
#include "graph.hpp"

#include <attributes.hpp>

#include <algorithm>

#include <regatta/ext/graph.h>

namespace executors {

bool graph_tensor::is(std::uint32_t kind, const std::vector<std::size_t>& shape) const {
  return info.kind == kind && info.ndim == shape.size() &&
         std::equal(shape.begin(), shape.end(), info.shape,
                    [](std::size_t a, std::int64_t b) { return static_cast<std::int64_t>(a) == b; });
}

std::vector<node> read_nodes(const rg_graph& g) {
  rg::refuse_unknown_attributes(g, reference::known_attributes);
  std::vector<node> nodes(g.node_count);
  for (std::uint32_t k = 0; k < g.node_count; ++k) {
    const auto raw = rg::copy_versioned(rg::at_stride(g.nodes, k));
    node& n = nodes[k];
    n.op = raw.op ? raw.op : "";
    n.name = raw.name ? raw.name : "";
    n.inputs.assign(raw.inputs, raw.inputs + raw.input_count);
    n.weights.assign(raw.weights, raw.weights + raw.weight_count);
    for (std::uint32_t a = 0; a < raw.attr_count; ++a)
      n.attrs.push_back(rg::copy_versioned(rg::at_stride(raw.attrs, a)));
    n.expect(raw.ndim <= RG_MAX_DIMS, "has too many dimensions");
    for (std::uint32_t d = 0; d < raw.ndim; ++d) {
      n.expect(raw.shape[d] > 0 && raw.shape[d] <= 1'000'000'000, "has a dimension that is not positive");
      n.shape.push_back(static_cast<std::size_t>(raw.shape[d]));
    }
    for (std::uint32_t i : n.inputs) {
      n.expect(i < k, "reads a node that does not come before it");
      nodes[i].consumers.push_back(k);
    }
    for (std::uint32_t w : n.weights) n.expect(w < g.tensor_count, "has a weight that does not exist");
    n.expect((n.op == "input") == (k < g.input_count), "inputs come first, and only they");
  }
  return nodes;
}

graph_tensor read_tensor(const rg_graph& g, std::uint32_t number) {
  graph_tensor t;
  t.info = rg::copy_versioned(rg::at_stride(g.tensors, number));
  t.name = t.info.name ? t.info.name : "";
  t.graph_index = number;
  if (t.info.ndim < 1 || t.info.ndim > RG_MAX_DIMS) t.fail("needs 1 to " + std::to_string(RG_MAX_DIMS) + " dimensions");
  for (std::uint32_t d = 0; d < t.info.ndim; ++d) {
    if (t.info.shape[d] < 1) t.fail("has a dimension that is not positive");
    t.elements *= static_cast<std::size_t>(t.info.shape[d]);
  }
  if (t.info.kind == RG_TENSOR_ROWS) {
    if (t.info.ndim != 2) t.fail("a sparse table needs rows and columns");
    t.sparse = std::make_unique<sparse_table>();
  } else if (t.info.kind != RG_TENSOR_DENSE && t.info.kind != RG_TENSOR_STATE) {
    t.fail("is of an unknown kind");
  }
  t.info.storage = t.elements;
  return t;
}

} // namespace executors
