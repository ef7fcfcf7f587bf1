// SPDX-License-Identifier: Apache-2.0
//
// flops_per_sample counts a multiply-add as one operation.
#include "interpreted.hpp"

namespace {

struct mistaken : broken::interpreted {
  explicit mistaken(const rg_graph& graph) : interpreted(graph) {
    for (std::uint32_t k = 0; k < graph.node_count; ++k) {
      const rg_node& n = graph.nodes[k];
      if (std::string_view(n.op) != "conv2d" && std::string_view(n.op) != "dense") continue;
      double outputs = 1, weights = 1;
      for (std::uint32_t d = 0; d < n.ndim; ++d) outputs *= static_cast<double>(n.shape[d]);
      const rg_tensor& w = graph.tensors[n.weights[0]];
      for (std::uint32_t d = 1; d < w.ndim; ++d) weights *= static_cast<double>(w.shape[d]);
      multiply_adds_ += 3 * outputs * weights;
    }
  }
  double flops() const override { return multiply_adds_; }
  double multiply_adds_ = 0;
};

struct executor : broken::runs<mistaken> {};

} // namespace

RG_PLUGIN("counts_multiply_adds", "1.0", rg::executor<executor>("counts_multiply_adds", "broken: half the operations"))
