// SPDX-License-Identifier: Apache-2.0
//
// What compiling a graph is in every executor: each makes ops of nodes, from the first to the last.
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
  // Node number i that n reads.
  const node& source(const node& n, std::size_t i) const;
  // The only consumer of node k, or null.
  node* follower(std::size_t k);

protected:
  // Throws rg::error, RG_E_CONFIG, where nodes contradict each other.
  graph_compiler(const rg_graph& g, compiled_graph& c);

  // Has ops made of all nodes, with compile_node() of those that none has taken in yet. Throws rg::error, RG_E_CONFIG or
  // RG_E_UNSUPPORTED, where they do not end in a loss or in a sum of all.
  void compile_nodes();
  virtual void compile_node(std::size_t k) = 0; // which may be an input, number k
  // Puts the weights in the order of rg_model_info. Throws rg::error, RG_E_CONFIG, where one is used by no op.
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
