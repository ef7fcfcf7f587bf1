// SPDX-License-Identifier: Apache-2.0
//
// The sparse tables of one rank: the windows in which a step of its worker finds the rows it touches (rg_table), and
// what the rank holds of the tables themselves (rg_strategy_host::own_rows). All of it is in the host's memory; where
// models compute on a device, the windows are what it reads and writes at full speed. [loop], and [main] before the
// first step.
#pragma once

#include "memory/regions.hpp"
#include "optimizer/table.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <regatta/abi.h>

namespace regatta {

class tables {
public:
  using init_function = std::function<void(std::uint32_t tensor, std::span<const std::uint64_t> rows, float* out)>;

  // Allocates windows for `micro_batches` batches a step where the rank is a worker. in_place: the model can read rows
  // where they lie. All but `init` outlive this.
  tables(const std::vector<rg_tensor>& tensors, std::uint64_t micro_batches, bool worker, bool in_place,
         region_table& regions, const update_rule& rule, init_function init);

  const std::vector<rg_table>& list() const { return list_; }

  // Puts the numbers of a step's rows into the windows; one entry a table, in their order. Throws failure (plugin) where
  // they do not fit, do not ascend or are no rows of the table.
  void set_rows(std::span<const rg_rows> rows);
  // The rows last set, in memory of the windows.
  std::span<const rg_rows> rows() const { return rows_; }
  // As a model sees them; they live as long as this.
  void show(rg_batch& batch, bool with_gradients);

  // What the rank holds of table `t`; null: nothing.
  row_table* held(bool as_server, std::uint32_t t) const { return held_[as_server][t].get(); }
  // These and operate() throw failure (plugin) where they are asked for what cannot be.
  void own(bool as_server, std::uint32_t t, std::uint64_t shards, std::uint64_t shard);
  // RG_OP_ROWS_*, RG_OP_GATHER, RG_OP_SCATTER; returns the bytes touched. Ghosts: does nothing else.
  std::uint64_t operate(const rg_op& op);

  arithmetic::norm partial(bool as_server) const;
  void commit(bool as_server, const arithmetic::norm& total, std::uint64_t step);

private:
  void move_rows(const rg_op& op) const;
  std::span<const std::int64_t> index_of(const rg_op& op) const;

  bool in_place_;
  region_table& regions_;
  const update_rule& rule_;
  init_function init_;
  std::vector<rg_tensor> tensors_; // of the tables
  std::vector<rg_table> list_;
  std::vector<rg_rows> rows_;
  std::vector<rg_table_rows> batch_;
  std::vector<const float* const*> rows_at_;                    // of those that were shown (RG_OP_SHOW), else null
  std::array<std::vector<std::unique_ptr<row_table>>, 2> held_; // as worker, as server; by table
};

} // namespace regatta
