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
  std::size_t batch = 0;             // samples
  std::vector<rg_tensor> tensors;    // in the order of rg_model_info
  std::vector<graph_tensor*> tables; // sparse tables, in the order of `tensors`
  std::vector<rg_input> inputs;
  std::vector<std::string> input_names;
  std::vector<measured*> losses;  // the first one's metric is the model's metric
  std::size_t metric_sums = 0;    // of all losses together
  std::uint32_t count_kinds = 0;  // how many of the losses are means over labels
  std::uint32_t tokens_input = 0; // 1 + the number of the input that holds tokens; 0: there is none
  std::string unit;               // what a sample is called in reports, such as "samples"

  // Appends a loss, which must live as long as this object, and sets its number, first_sum and count_kind.
  void add(measured& loss);
  // Appends a tensor, and a sparse table to `tables`, too; sets its index and, of a sparse table, max_rows. Requires
  // that `batch` and the table's lookups are set. The tensor must live as long as this object.
  void add(graph_tensor& t);

  // Returns the fields that do not depend on the executor; the others are 0. Requires a loss. The pointers stay valid
  // while this object lives unchanged.
  rg_model_info describe() const;
  // For each of `tables`, in order, collects the rows that the batch reads and sets an element of `out`, which needs
  // tables.size() of them. Their pointers are valid until the next call. Requires sparse_table::prepare() of each.
  // Throws rg::error, RG_E_OPERATION, for an id outside of a table.
  void rows(const rg_batch& b, std::span<rg_rows> out) const;
  // Returns the first loss's metric; `sums` has metric_sums elements.
  double metric(std::span<const double> sums) const;
  // For each loss that is a mean over labels, adds measured::count() of the batch to counts[count_kind].
  void count(const rg_batch& b, std::span<std::uint64_t> counts) const;
};

} // namespace executors
