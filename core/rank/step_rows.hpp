// SPDX-License-Identifier: Apache-2.0
//
// Determines which rows of the sparse tables a worker's batches touch, and sets them in its windows
// (sparse_tables::set_rows).
#pragma once

#include "rank/model.hpp"
#include "runtime/sparse_tables.hpp"

#include <cstdint>
#include <functional>
#include <vector>

#include <regatta/abi.h>

namespace regatta {

// All functions are [compute], on the thread that holds the strategy. They allocate nothing for a number of rows that
// came before.
class step_rows {
public:
  // Both must outlive this object.
  step_rows(model_instance& model, sparse_tables& tables) : model_(model), tables_(tables) {}

  // Sets the rows that one batch touches. Throws failure if the model cannot list them, or, (plugin), lists wrong ones.
  void set(const rg_batch& batch);
  // Sets the union of the rows that the step's micro-batches touch. batch(m) returns micro-batch m; it is called for
  // each m below `micro_batches`, in order. Throws failure as the other set().
  void set(std::uint64_t micro_batches, const std::function<rg_batch(std::uint64_t m)>& batch);

private:
  void read(const rg_batch& batch);
  void merge(bool first);

  model_instance& model_;
  sparse_tables& tables_;
  std::vector<rg_rows> rows_;                      // of a batch, by table
  std::vector<std::vector<std::uint64_t>> unions_; // of several batches, by table
  std::vector<std::uint64_t> merged_;
};

} // namespace regatta
