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

// All functions are [compute]; they allocate nothing once the largest number of rows has come.
class step_rows {
public:
  // Both must outlive this object.
  step_rows(model_instance& model, sparse_tables& tables) : model_(model), tables_(tables) {}

  // Sets the rows that one batch touches. Throws failure.
  void set(const rg_batch& batch);
  // Sets the rows that any of the step's `micro_batches` touches; batch(m) returns them. Throws failure.
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
