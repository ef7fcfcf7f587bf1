// SPDX-License-Identifier: Apache-2.0
//
// A sparse table as the layers of a network read it: the rows that a batch touches, and where they stand among those of
// a step.
#pragma once

#include "row_index.hpp"

#include <optional>
#include <string>

#include <regatta/model.hpp>

namespace executors {

struct sparse_table {
  // A layer's reads of it.
  struct lookup {
    int input;       // of the batch, holding ids
    std::size_t ids; // a sample
    std::int64_t padding;
  };
  std::vector<lookup> lookups;
  std::optional<row_index> index;     // of the rows that this step brings
  std::size_t count = 0;              // of them
  std::vector<std::uint64_t> touched; // what collect() last said

  // That one batch can touch.
  std::uint64_t most_rows(std::size_t batch, const rg_tensor& table) const;
  // Before the first of what follows; allocates all that it needs. `most`: what most_rows said.
  void prepare(const rg_tensor& table, std::uint64_t most);
  // Makes `touched` the rows that a batch reads. Throws rg::error, RG_E_OPERATION, for an id that is none of its rows.
  void collect(const rg_tensor& table, const rg_batch& batch);
  // Takes the rows of table number `number` as the engine hands them over. Throws rg::error, RG_E_PLUGIN.
  void take(const rg_tensor& table, std::uint32_t number, const rg_table_rows& rows);
};

// In training all samples count; in evaluation the first ones, and what the others hold is nobody's business.
inline std::size_t valid_samples(const rg_batch& b) {
  return b.valid < b.samples ? b.valid : b.samples;
}
// Throws rg::error, RG_E_OPERATION, where one of the ids, `each` a sample, is no row of the table.
void check_ids(const rg_tensor& table, const rg_batch& b, const std::int32_t* ids, std::size_t count, std::size_t each);
// What an id says whose row was not brought.
[[noreturn]] void not_brought(const rg_tensor& table, const rg_batch& b, std::int32_t id);

} // namespace executors
