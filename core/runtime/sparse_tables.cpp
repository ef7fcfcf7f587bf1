// SPDX-License-Identifier: Apache-2.0
#include "runtime/sparse_tables.hpp"

#include "runtime/refusal.hpp"
#include "runtime/weight_updates.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

constexpr const char* on_host_only = "operations on rows are in the host's memory only";

} // namespace

sparse_tables::sparse_tables(const std::vector<rg_tensor>& tensors, std::uint64_t micro_batches, bool worker,
                             bool in_place, region_table& regions, const update_rule& rule, init_function init)
    : in_place_(in_place), regions_(regions), rule_(rule), init_(std::move(init)) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const rg_tensor& t = tensors[i];
    if (t.kind != RG_TENSOR_ROWS) continue;
    if (t.ndim < 1 || t.shape[0] < 1 || !t.max_rows)
      refuse_call(fmt::format("table {}: needs a first dimension (its rows) and max_rows", t.name));
    auto table = rg::make_versioned<rg_table>();
    table.tensor = static_cast<std::uint32_t>(i);
    table.rows = static_cast<std::uint64_t>(t.shape[0]);
    table.row = rg::storage_of(t) / table.rows;
    table.max_rows = std::min(table.rows, t.max_rows * micro_batches);
    if (!table.row) refuse_call(fmt::format("table {}: its rows have no elements", t.name));
    if (worker) {
      table.numbers =
          regions_.allocate_on_host(RG_I64, table.max_rows, fmt::format("the row numbers of table {}", t.name));
      const std::uint64_t elements = table.max_rows * table.row;
      table.weights = regions_.allocate_shared(RG_F32, elements, fmt::format("the rows of table {}", t.name));
      table.gradients =
          regions_.allocate_shared(RG_F32, elements, fmt::format("the gradients of the rows of table {}", t.name));
    }
    tensors_.push_back(t);
    windows_.push_back(table);
    rows_.emplace_back(rg::make_versioned<rg_rows>()).tensor = table.tensor;
    batch_.emplace_back(rg::make_versioned<rg_table_rows>()).tensor = table.tensor;
  }
  rows_at_.resize(windows_.size());
  for (auto& h : shards_) h.resize(windows_.size());
  for (auto& w : waiting_) w.resize(windows_.size());
}

void sparse_tables::set_rows(std::span<const rg_rows> rows) {
  for (std::size_t t = 0; t < windows_.size(); ++t) {
    const rg_table& table = windows_[t];
    const auto given = rg::copy_versioned(rg::at_stride(rows.data(), t));
    const auto name = [&] { return tensors_[t].name; };
    if (given.tensor != table.tensor) refuse_call(fmt::format("rows(): entry {} is not of table {}", t, name()));
    if (given.count > table.max_rows)
      refuse_call(
          fmt::format("rows(): {} rows of table {}, which has {} at most a step", given.count, name(), table.max_rows));
    rows_[t].count = given.count;
    rows_at_[t] = nullptr;
    for (std::uint64_t i = 0; i < given.count; ++i)
      if (given.rows[i] >= table.rows || (i && given.rows[i] <= given.rows[i - 1]))
        refuse_call(fmt::format("rows(): row {} of table {}: rows must ascend, be named once and lie below {}",
                                given.rows[i], name(), table.rows));
    void* numbers = regions_.address(table.numbers);
    if (given.count) std::memmove(numbers, given.rows, given.count * sizeof(std::uint64_t));
    rows_[t].rows = static_cast<const std::uint64_t*>(numbers);
  }
}

void sparse_tables::attach(rg_batch& batch, bool with_gradients) {
  for (std::size_t t = 0; t < windows_.size(); ++t) {
    batch_[t].rows = rows_[t].rows;
    batch_[t].count = rows_[t].count;
    batch_[t].weights = regions_.address(windows_[t].weights);
    batch_[t].gradients = with_gradients ? regions_.address(windows_[t].gradients) : nullptr;
  }
  batch.tables = batch_.data();
  batch.table_count = static_cast<std::uint32_t>(batch_.size());
  batch.rows_at = rows_at_.data();
}

void sparse_tables::own(bool as_server, std::uint32_t t, std::uint64_t shards, std::uint64_t shard) {
  if (t >= windows_.size()) refuse_call(fmt::format("own_rows: table {} of {}", t, windows_.size()));
  if (shards_[as_server][t]) refuse_call(fmt::format("own_rows: table {} is owned already", t));
  if (shard >= shards) refuse_call(fmt::format("own_rows: shard {} of {}", shard, shards));
  if (regions_.ghosts()) return;
  row_table::shape shape;
  shape.rows = windows_[t].rows;
  shape.row = windows_[t].row;
  shape.shards = shards;
  shape.shard = shard;
  shape.decay = tensors_[t].decay;
  shape.lr_scale = tensors_[t].lr_scale;
  shards_[as_server][t] = std::make_unique<row_table>(
      rule_, shape, [this, tensor = windows_[t].tensor](std::span<const std::uint64_t> rows, float* out) {
        init_(tensor, rows, out);
      });
}

// Returns the row numbers in `rows`; none if it is empty.
std::span<const std::int64_t> sparse_tables::numbers(const rg_buffer& rows) const {
  if (!rows.count) return {};
  if (regions_.on_device(rows)) refuse_call(on_host_only);
  if (!regions_.contains(rows) || rows.type != RG_I64) refuse_call("rows: the row numbers are no buffer of RG_I64");
  return regions_.elements<const std::int64_t>(rows);
}

// Returns the address of the values in `b`; null if it is empty, and with ghosts.
float* sparse_tables::values(const rg_buffer& b) const {
  if (!b.count) return nullptr;
  if (regions_.on_device(b)) refuse_call(on_host_only);
  if (!regions_.contains(b) || b.type != RG_F32) refuse_call("rows: the values are no buffer of RG_F32");
  return static_cast<float*>(regions_.address(b));
}

// As above, of `rows` rows of a table.
float* sparse_tables::values(const rg_buffer& b, std::uint32_t table, std::uint64_t rows) const {
  if (table >= windows_.size()) refuse_call(fmt::format("rows: table {} of {}", table, windows_.size()));
  if (b.count != rows * windows_[table].row)
    refuse_call(fmt::format("rows: {} values for {} rows of {}", b.count, rows, windows_[table].row));
  return values(b);
}

row_table& sparse_tables::held(std::uint32_t role, std::uint32_t table) const {
  row_table* const rows = shards_[is_server(role)][table].get();
  if (!rows) refuse_call(fmt::format("rows: this rank owns none of table {}: own_rows comes first", table));
  return *rows;
}

std::uint64_t sparse_tables::operate(const rg_op_rows_read& o) {
  const auto rows = numbers(o.rows);
  float* const out = values(o.target, o.table, o.rows.count);
  if (regions_.ghosts()) {
    if (in_place_ && (o.flags & RG_ROWS_FOR_MODEL)) return 0;
  } else {
    if (in_place_ && (o.flags & RG_ROWS_FOR_MODEL) && rows.size() == rows_[o.table].count)
      rows_at_[o.table] = held(o.role, o.table).addresses(rows).data();
    else
      held(o.role, o.table).read(rows, out);
  }
  return bytes_of(o.target) * 3;
}

std::uint64_t sparse_tables::operate(const rg_op_rows_add& o) {
  const auto rows = numbers(o.rows);
  const float* const gradients = values(o.gradients, o.table, o.rows.count);
  if (!regions_.ghosts()) {
    held(o.role, o.table).add(rows, gradients);
  } else {
    std::vector<std::int64_t>& waiting = waiting_[is_server(o.role)][o.table];
    waiting.insert(waiting.end(), rows.begin(), rows.end());
  }
  return bytes_of(o.gradients) * 3;
}

std::uint64_t sparse_tables::operate(const rg_op_rows_apply& o) {
  const auto rows = numbers(o.rows);
  const float* const gradients = values(o.gradients, o.table, o.rows.count);
  if (regions_.ghosts()) return (bytes_of(o.gradients) + take_waiting(o)) * 5;
  if (o.rows.region)
    held(o.role, o.table).apply(rows, gradients, o.step);
  else
    held(o.role, o.table).apply(o.step);
  return bytes_of(o.gradients) * 5;
}

std::uint64_t sparse_tables::take_waiting(const rg_op_rows_apply& o) {
  std::vector<std::int64_t>& waiting = waiting_[is_server(o.role)][o.table];
  std::ranges::sort(waiting);
  const auto rows = static_cast<std::uint64_t>(std::unique(waiting.begin(), waiting.end()) - waiting.begin());
  waiting.clear();
  return rows * windows_[o.table].row * sizeof(float);
}

std::uint64_t sparse_tables::operate(const rg_op_rows_write& o) {
  const auto rows = numbers(o.rows);
  const float* const source = values(o.values, o.table, o.rows.count);
  if (!regions_.ghosts()) held(o.role, o.table).write(rows, static_cast<float>(o.factor), source);
  return bytes_of(o.values) * 3;
}

std::uint64_t sparse_tables::operate(const rg_op_copy_rows& o) const {
  const bool gather = o.op.kind == RG_OP_GATHER_ROWS;
  const auto index = numbers(o.index);
  float *const listed = values(o.rows), *const table = values(o.table);
  if (regions_.ghosts() || index.empty()) return bytes_of(o.rows) * 2;
  if (o.rows.count % index.size()) refuse_call("gather, scatter: rows of different length");
  const std::uint64_t row = o.rows.count / index.size(), rows = row ? o.table.count / row : 0;
  for (const std::int64_t r : index)
    if (static_cast<std::uint64_t>(r) >= rows) refuse_call(fmt::format("gather, scatter: row {} of {}", r, rows));
  for (std::size_t i = 0; i < index.size(); ++i) {
    float *const a = listed + i * row, *const b = table + static_cast<std::uint64_t>(index[i]) * row;
    if (gather)
      std::memcpy(a, b, row * sizeof(float));
    else if (o.flags & RG_OP_ADD)
      arithmetic::add(std::span(b, row), std::span<const float>(a, row));
    else
      std::memcpy(b, a, row * sizeof(float));
  }
  return bytes_of(o.rows) * 2;
}

arithmetic::norm sparse_tables::partial(bool as_server) const {
  arithmetic::norm sum;
  for (const auto& held : shards_[as_server])
    if (held) {
      sum.not_finite += held->partial().not_finite;
      sum.sum_of_squares += held->partial().sum_of_squares;
    }
  return sum;
}

void sparse_tables::commit(bool as_server, const arithmetic::norm& total, std::uint64_t step) {
  for (const auto& held : shards_[as_server])
    if (held) held->commit(total, step);
}

} // namespace regatta
