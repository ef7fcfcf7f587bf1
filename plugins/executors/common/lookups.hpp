// SPDX-License-Identifier: Apache-2.0
//
// A sparse table as a network's layers read it: which rows a batch touches, and the position of each among the rows of
// a step.
#pragma once

#include "row_index.hpp"

#include <optional>
#include <string>

#include <regatta/model.hpp>

namespace executors {

struct sparse_table {
  // One layer that reads the table.
  struct lookup {
    int input;            // number of the batch's input that holds ids
    std::size_t ids;      // per sample
    std::int64_t padding; // an id that is skipped, or -1
  };
  std::vector<lookup> lookups;
  std::optional<row_index> index;     // of the rows in this step's window
  std::size_t count = 0;              // rows in this step's window
  std::vector<std::uint64_t> touched; // the rows that collect() found

  // Returns an upper bound for the rows that one batch touches.
  std::uint64_t most_rows(std::size_t batch, const rg_tensor& table) const;
  // Must be called before collect() and take(). Allocates all memory that they need. `most`: the result of most_rows().
  void prepare(const rg_tensor& table, std::uint64_t most);
  // Sets `touched` to the rows that a batch reads. Throws rg::error, RG_E_OPERATION, for an id outside of the table.
  void collect(const rg_tensor& table, const rg_batch& batch);
  // Takes the rows of tensor `number` that the engine provides for a step. Throws rg::error, RG_E_PLUGIN, if they
  // belong to another tensor or do not ascend.
  void take(const rg_tensor& table, std::uint32_t number, const rg_table_rows& rows);
};

// Training counts all samples of a batch. Evaluation counts the first `valid` samples; the padding samples after them
// are ignored.
inline std::size_t valid_samples(const rg_batch& b) {
  return b.valid < b.samples ? b.valid : b.samples;
}
// Throws rg::error, RG_E_OPERATION, if an id is no row of the table. There are `each` ids per sample.
void check_ids(const rg_tensor& table, const rg_batch& b, const std::int32_t* ids, std::size_t count, std::size_t each);
// Throws the error for an id whose row is missing in the step's window.
[[noreturn]] void not_brought(const rg_tensor& table, const rg_batch& b, std::int32_t id);

} // namespace executors
