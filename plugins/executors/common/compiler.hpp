// SPDX-License-Identifier: Apache-2.0
//
// The part of compiling a graph that all executors share: it calls a derived class for the nodes in the order of the
// graph, and the derived class makes ops of them.
#pragma once

#include "compiled_graph.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include <regatta/ext/graph.h>

namespace executors {

class graph_compiler {
public:
  virtual ~graph_compiler() = default;
  graph_compiler(const graph_compiler&) = delete;
  graph_compiler& operator=(const graph_compiler&) = delete;

  // Returns node k, which must exist. Compiling a node may change node::done of later ones.
  node& at(std::size_t k) { return nodes_[k]; }
  // Returns the node that is input i of n. Throws rg::error, RG_E_CONFIG, if n has fewer inputs.
  const node& source(const node& n, std::size_t i) const;
  // Returns the only consumer of node k; null if it has none or several. A consumer that reads k twice counts as two.
  node* follower(std::size_t k);

protected:
  // Reads the nodes, and sets c's inputs, unit (the name of samples) and tokens_input. Nodes refer to texts of `g`, so
  // g must outlive this object, as must c. Throws rg::error: RG_E_UNSUPPORTED if a node has an attribute that is
  // unknown or no number, RG_E_CONFIG if a node is inconsistent or tokens_input names no input.
  graph_compiler(const rg_graph& g, compiled_graph& c);

  // Calls compile_node() for each node in order, except for sums of losses and for nodes whose node::done an earlier
  // call has set. Throws rg::error, RG_E_CONFIG, if the graph does not end in a loss or in the sum of all losses, or if
  // another node, other than an input, has no consumer; and as compile_node().
  void compile_nodes();
  // Makes an op of node k, which may be an input, and sets node::done of later nodes that the op computes as well. A
  // loss must be added to the compiled_graph in this call. Throws rg::error: RG_E_CONFIG if the node is inconsistent,
  // RG_E_UNSUPPORTED if the executor does not have its op.
  virtual void compile_node(std::size_t k) = 0;
  // Sorts the weights by graph_tensor::comes_before(), and adds them to the compiled_graph in this order. Call it after
  // compile_nodes(), once. Throws rg::error, RG_E_CONFIG, if there is a weight that no op uses.
  template <class W> void order(std::vector<std::unique_ptr<W>>& weights) {
    for (const auto& w : weights)
      if (w->first_op == graph_tensor::unused) w->fail("no layer uses it");
    std::stable_sort(weights.begin(), weights.end(), [](const auto& a, const auto& b) { return a->comes_before(*b); });
    for (const auto& w : weights) compiled_.add(*w);
  }

  std::vector<node> nodes_;

private:
  void check_end() const;

  compiled_graph& compiled_;
};

} // namespace executors
