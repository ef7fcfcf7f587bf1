// SPDX-License-Identifier: Apache-2.0
//
// The parts of a compiled graph that do not depend on the device: an executor keeps them and describes them to the
// engine.
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
  std::vector<graph_tensor*> tables; // sparse tables, in the order of `tensors`
  std::vector<rg_input> inputs;
  std::vector<std::string> input_names;
  std::vector<measured*> losses; // the first one's metric is the model's metric
  std::size_t metric_sums = 0;
  std::uint32_t count_kinds = 0;
  std::uint32_t tokens_input = 0; // see rg_model_info
  std::string unit;

  // Appends a loss and numbers it.
  void add(measured& loss);
  // Appends a tensor; a sparse table is appended to `tables`, too. rows() and count() use the order of these calls.
  void add(graph_tensor& t);

  // Returns the fields that do not depend on the executor. The pointers stay valid while this object lives.
  rg_model_info describe() const;
  void rows(const rg_batch& b, std::span<rg_rows> out) const;
  double metric(std::span<const double> sums) const;
  void count(const rg_batch& b, std::span<std::uint64_t> counts) const;
};

} // namespace executors
