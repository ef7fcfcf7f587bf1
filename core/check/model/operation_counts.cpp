// SPDX-License-Identifier: Apache-2.0
#include "check/model/operation_counts.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

#include <attributes.hpp>
#include <regatta/plugin.hpp>

namespace regatta::conformance {
namespace {

double product(const std::int64_t* shape, std::uint32_t ndim) {
  double all = 1;
  for (std::uint32_t d = 0; d < ndim; ++d) all *= static_cast<double>(shape[d]);
  return all;
}

} // namespace

operation_counts count_operations(const rg_graph& graph) {
  operation_counts counts;
  std::vector<rg_node> nodes;
  std::vector<char> is_trained; // by node: its output depends on weights
  for (std::uint32_t k = 0; k < graph.node_count; ++k) {
    const rg_node& n = nodes.emplace_back(rg::copy_versioned(rg::at_stride(graph.nodes, k)));
    const std::string_view op = n.op;
    const bool input_is_trained =
        std::any_of(n.inputs, n.inputs + n.input_count, [&](std::uint32_t i) { return is_trained[i] != 0; });
    is_trained.push_back(input_is_trained || n.weight_count > 0);
    const double outputs = product(n.shape, n.ndim), passes = input_is_trained ? 3 : 2;
    counts.elements += outputs;
    if (op == "conv2d" || op == "dense") {
      // Each output is a sum over the weights of its channel or feature.
      const rg_tensor w = rg::copy_versioned(rg::at_stride(graph.tensors, n.weights[0]));
      counts.products += passes * 2 * outputs * product(w.shape, w.ndim) / static_cast<double>(w.shape[0]);
    } else if (op == "attention") {
      // Queries times keys, and probabilities times values.
      counts.products += 3 * 4 * outputs * static_cast<double>(nodes[n.inputs[1]].shape[0]);
    } else if (std::none_of(std::begin(reference::known_attributes), std::end(reference::known_attributes),
                            [&](const rg::op_attributes& o) { return o.op == op; })) {
      counts.unknown = op;
    }
  }
  return counts;
}

} // namespace regatta::conformance
