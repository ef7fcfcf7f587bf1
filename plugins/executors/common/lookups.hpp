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

// Used in this order: fill `lookups`, then most_rows() and prepare() once; then per step collect(), take(), and reads
// of index and count.
struct sparse_table {
  // One layer that reads the table.
  struct lookup {
    int input;            // number of the batch's input that holds ids
    std::size_t ids;      // per sample
    std::int64_t padding; // an id that is skipped, or -1: none
  };
  std::vector<lookup> lookups;
  std::optional<row_index> index;     // the rows in this step's window, after take(); collect() overwrites it
  std::size_t count = 0;              // rows in this step's window
  std::vector<std::uint64_t> touched; // the rows that collect() found, ascending

  // Returns an upper bound for the rows that one batch of `batch` samples touches.
  std::uint64_t most_rows(std::size_t batch, const rg_tensor& table) const;
  // Allocates all memory that collect() and take() need; both require this call. `most` is the result of most_rows().
  void prepare(const rg_tensor& table, std::uint64_t most);
  // Sets `touched` to the rows that the valid samples of a batch read. Throws rg::error, RG_E_OPERATION, for an id
  // outside of the table.
  void collect(const rg_tensor& table, const rg_batch& batch);
  // Sets `index` and `count` to the rows that the engine provides for a step; `number` is the table's index in
  // rg_model_info. Throws rg::error, RG_E_PLUGIN, if the rows belong to another tensor, do not ascend, or are outside
  // of the table.
  void take(const rg_tensor& table, std::uint32_t number, const rg_table_rows& rows);
};

// Returns the number of samples that count, the first ones of the batch: all in training, `valid` in an evaluation,
// where padding samples may follow.
inline std::size_t valid_samples(const rg_batch& b) {
  return b.valid < b.samples ? b.valid : b.samples;
}
// Throws rg::error, RG_E_OPERATION, if one of `count` ids is no row of the table. There are `each` ids per sample, from
// which the message computes the sample's number.
void check_ids(const rg_tensor& table, const rg_batch& b, const std::int32_t* ids, std::size_t count, std::size_t each);
// Throws rg::error, RG_E_PLUGIN: the engine did not provide the row of this id for the step.
[[noreturn]] void fail_missing_row(const rg_tensor& table, const rg_batch& b, std::int32_t id);

} // namespace executors
