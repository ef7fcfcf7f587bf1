// SPDX-License-Identifier: Apache-2.0
//
// What an executor keeps of a graph that it has compiled, and tells the engine of it, whatever it computes with.
#pragma once

#include "graph.hpp"
#include "metrics.hpp"

#include <span>
#include <string>
#include <vector>

namespace executors {

struct compiled_graph {
  std::size_t batch = 0;
  std::vector<rg_tensor> tensors;    // in the order of rg_model_info
  std::vector<graph_tensor*> tables; // the sparse ones, in their order
  std::vector<rg_input> inputs;
  std::vector<std::string> input_names;
  std::vector<measured*> losses; // the first one's metric is the model's
  std::size_t metric_sums = 0;
  std::uint32_t count_kinds = 0;
  std::uint32_t tokens_input = 0; // of rg_model_info
  std::string unit;

  // Before the first of what follows: they are the next.
  void add(measured& loss);
  void add(graph_tensor& t);

  // All that does not depend on how it is computed.
  rg_model_info describe() const;
  void rows(const rg_batch& b, std::span<rg_rows> out) const;
  double metric(std::span<const double> sums) const;
  void count(const rg_batch& b, std::span<std::uint64_t> counts) const;
};

} // namespace executors
