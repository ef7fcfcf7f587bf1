// SPDX-License-Identifier: Apache-2.0
//
// The sparse tables of one rank: the windows that hold the rows of its worker's current step (rg_table), and the rank's
// shards of the tables (rg_strategy_host::own_rows). All of it lies in host memory; where models compute on a device,
// the windows are pinned memory that the device reads and writes directly. [loop], and [main] before the first step.
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

class sparse_tables {
public:
  // Writes the initial weights of rows of a table, one after the other. `tensor` is the table's index in the
  // constructor's `tensors` (rg_table.tensor).
  using init_function = std::function<void(std::uint32_t tensor, std::span<const std::uint64_t> rows, float* out)>;

  // Copies the ROWS tensors of `tensors`, in order: table t is the t-th of them. Allocates windows for `micro_batches`
  // batches per step if the rank is a worker. in_place: the model can read rows in the shard without a copy to the
  // window (RG_ROWS_FOR_MODEL). `regions` and `rule` must outlive this object. Throws failure (plugin) if a table has
  // no rows, no elements or no max_rows.
  sparse_tables(const std::vector<rg_tensor>& tensors, std::uint64_t micro_batches, bool worker, bool in_place,
                region_table& regions, const update_rule& rule, init_function init);

  // Returns the windows, by table; their buffers are empty on a rank that is no worker.
  const std::vector<rg_table>& windows() const { return windows_; }

  // Copies the row numbers of a step into the windows; one entry per table, in table order. Throws failure (plugin) if
  // they are more than max_rows, do not strictly ascend or lie outside the table. On workers only.
  void set_rows(std::span<const rg_rows> rows);
  // Returns the rows that were last set, by table; the numbers lie in the windows.
  std::span<const rg_rows> rows() const { return rows_; }
  // Makes `batch` point to the rows that were last set, and to the windows with their weights and gradients. Without
  // `with_gradients` the gradients are null, as for an evaluation. Valid until the next set_rows() or attach().
  void attach(rg_batch& batch, bool with_gradients);

  // Returns the shard of table `t` that the rank holds in this role, valid as long as this object; null: it holds none.
  row_table* shard(bool as_server, std::uint32_t t) const { return shards_[as_server][t].get(); }
  // own() and operate() throw failure (plugin) if their arguments are invalid.
  //
  // Makes this rank the holder, in one role, of the rows r of table `t` with r mod shards == shard. At most once for
  // each role and table. With ghosts it creates nothing.
  void own(bool as_server, std::uint32_t t, std::uint64_t shards, std::uint64_t shard);
  // Execute an operation on rows and return the bytes touched. With ghosts, whose row numbers have bytes and whose
  // values have none, they only return the bytes.
  std::uint64_t operate(const rg_op_rows_read& o);
  std::uint64_t operate(const rg_op_rows_add& o);
  std::uint64_t operate(const rg_op_rows_apply& o);
  std::uint64_t operate(const rg_op_rows_write& o);
  std::uint64_t operate(const rg_op_copy_rows& o) const;

  // For an update that is deferred until the norm of all gradients is known. partial() returns the norm of the
  // gradients that wait in all shards of the role; commit() executes their updates, clipped by `total`, the norm over
  // all ranks.
  arithmetic::norm partial(bool as_server) const;
  void commit(bool as_server, const arithmetic::norm& total, std::uint64_t step);

private:
  std::span<const std::int64_t> numbers(const rg_buffer& rows) const;
  float* values(const rg_buffer& b) const;
  float* values(const rg_buffer& b, std::uint32_t table, std::uint64_t rows) const;
  row_table& held(std::uint32_t role, std::uint32_t table) const;
  // With ghosts: returns the bytes of the rows that were added since the last update, each counted once.
  std::uint64_t take_waiting(const rg_op_rows_apply& o);

  bool in_place_;
  region_table& regions_;
  const update_rule& rule_;
  init_function init_;
  std::vector<rg_tensor> tensors_; // of the sparse tables
  std::vector<rg_table> windows_;
  std::vector<rg_rows> rows_;
  std::vector<rg_table_rows> batch_;
  std::vector<const void* const*>
      rows_at_; // by table: rows for the model to read in place (RG_ROWS_FOR_MODEL), else null
  std::array<std::vector<std::unique_ptr<row_table>>, 2> shards_; // as worker, as server; by table
  std::array<std::vector<std::vector<std::int64_t>>, 2>
      waiting_; // with ghosts: rows that were added, by role and table
};

} // namespace regatta
