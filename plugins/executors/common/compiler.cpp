// SPDX-License-Identifier: Apache-2.0
#include "compiler.hpp"

#include <utility>

#include <regatta/ext/graph.h>

namespace executors {

graph_compiler::graph_compiler(const rg_graph& g, compiled_graph& c) : nodes_(read_nodes(g)), compiled_(c) {
  c.unit = g.unit ? g.unit : "samples";
  c.tokens_input = rg::copy_versioned(g).tokens_input;
  if (c.tokens_input > g.input_count) throw rg::error(RG_E_CONFIG, "the input of tokens is none of the inputs");
  for (std::uint32_t k = 0; k < g.input_count; ++k) {
    c.inputs.push_back(rg::copy_versioned(rg::at_stride(g.inputs, k)));
    c.input_names.emplace_back(c.inputs[k].name ? c.inputs[k].name : "");
  }
  for (std::uint32_t k = 0; k < g.input_count; ++k) c.inputs[k].name = c.input_names[k].c_str();
}

const node& graph_compiler::source(const node& n, std::size_t i) const {
  n.expect(i < n.inputs.size(), "has too few inputs");
  return nodes_[n.inputs[i]];
}

node* graph_compiler::follower(std::size_t k) {
  return nodes_[k].consumers.size() == 1 ? &nodes_[nodes_[k].consumers[0]] : nullptr;
}

void graph_compiler::compile_nodes() {
  for (std::size_t k = 0; k < nodes_.size(); ++k) {
    node& n = nodes_[k];
    if (std::exchange(n.done, true)) continue;
    if (n.op == "sum_of_losses") { // model::step adds the losses up
      n.expect(!n.inputs.empty(), "has too few inputs");
      for (std::uint32_t i : n.inputs) n.expect(nodes_[i].is_loss, "has an input that is not a loss");
      continue;
    }
    const std::size_t losses = compiled_.losses.size();
    compile_node(k);
    n.is_loss = compiled_.losses.size() > losses;
  }
  check_end();
}

// The last node must be a loss or a sum of losses; every loss must be that node or one of its summands.
void graph_compiler::check_end() const {
  const std::size_t last = nodes_.size() - 1;
  if (nodes_.empty() || (nodes_[last].op != "sum_of_losses" && !nodes_[last].is_loss))
    throw rg::error(RG_E_CONFIG, "the network must end in a loss, such as softmax_cross_entropy");
  for (std::size_t k = 0; k < last; ++k) {
    const node& n = nodes_[k];
    if (n.is_loss)
      n.expect(n.consumers == std::vector<std::size_t>{last},
               "is a loss, but neither the last layer nor an input of sum_of_losses");
    else
      n.expect(n.op == "input" || !n.consumers.empty(), "has an output that no layer reads");
  }
}

} // namespace executors
