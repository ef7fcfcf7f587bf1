// SPDX-License-Identifier: Apache-2.0
//
// The part of compiling a graph that all executors share: they make ops of the nodes in the order of the graph.
#pragma once

#include "compiled_graph.hpp"

#include <algorithm>
#include <memory>
#include <vector>

namespace executors {

class graph_compiler {
public:
  virtual ~graph_compiler() = default;
  graph_compiler(const graph_compiler&) = delete;
  graph_compiler& operator=(const graph_compiler&) = delete;

  node& at(std::size_t k) { return nodes_[k]; }
  // Returns the node that is input i of n. Throws rg::error, RG_E_CONFIG, if n has fewer inputs.
  const node& source(const node& n, std::size_t i) const;
  // Returns the only consumer of node k; null if it has none or several.
  node* follower(std::size_t k);

protected:
  // Throws rg::error, RG_E_CONFIG, if the nodes are inconsistent.
  graph_compiler(const rg_graph& g, compiled_graph& c);

  // Calls compile_node() for each node in order, except for those that an earlier call has marked as done. Throws
  // rg::error, RG_E_CONFIG or RG_E_UNSUPPORTED, if the graph does not end in a loss or in the sum of all losses.
  void compile_nodes();
  virtual void compile_node(std::size_t k) = 0; // k may be an input
  // Puts the weights in the order of rg_model_info. Throws rg::error, RG_E_CONFIG, if no op uses one of them.
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
