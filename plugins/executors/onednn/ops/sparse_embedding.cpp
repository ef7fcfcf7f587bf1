// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse_embedding.hpp"

#include "runtime/memory_plan.hpp"

#include <algorithm>

namespace onednn {

void take_rows(executors::graph_tensor& table, const rg_table_rows& rows) {
  table.sparse->take(table.info, table.index, rows);
  table.data = const_cast<float*>(rows.weights); // no op writes to it
  table.gradient = rows.gradients;
}

embedding::embedding(std::string name, value* ids, value* out, weight* table, std::int64_t padding, bool sum,
                     const device& dev)
    : op(std::move(name), {ids}, out), dev_(dev), table_(table), padding_(padding), sum_(sum), ids_(ids->elements()),
      dim_(table->row()) {
  weights_ = {table};
  if (table->sparse) table->sparse->lookups.push_back({.input = ids->input, .ids = ids_, .padding = padding});
}

void embedding::plan(memory_plan& m) {
  batch_ = m.batch();
  slot_ = m.ask_kept(batch_ * ids_ * sizeof(std::uint32_t));
}

void embedding::attach(const memory_plan& m) {
  at_ = m.at_slot<std::uint32_t>(slot_);
}

// Sets at_ to the numbers of the rows that the batch looks up.
void embedding::place(const run& r) {
  const rg_batch& b = *r.batch;
  const auto* ids = static_cast<const std::int32_t*>(b.inputs[inputs_[0].from->input]);
  const std::size_t count = executors::valid_samples(b) * ids_;
  executors::check_ids(table_->info, b, ids, count, ids_);
  if (table_->sparse)
    dev_.rows->find(table_->sparse->index->words(), ids, count, at_);
  else
    std::copy_n(ids, count, at_);
  std::fill(at_ + count, at_ + batch_ * ids_, no_row);
  for (std::size_t i = 0; i < count; ++i)
    if (ids[i] == padding_)
      at_[i] = no_row;
    else if (at_[i] == no_row)
      executors::not_brought(table_->info, b, ids[i]);
}

void embedding::forward(run& r) {
  place(r);
  const value& out = *output_;
  auto* look_up = sum_ ? dev_.rows->gather_sum : dev_.rows->gather;
  parallel(dev_, batch_, [&](std::size_t s) {
    float* y = out.data + s * out.stride;
    look_up(table_->data, dim_, at_ + s * ids_, ids_, y);
    std::fill(y + out.channels, y + out.stride, 0.0F);
  });
}

// Each thread updates its own range of rows and reads all samples in order, so that sums do not depend on scheduling.
void embedding::backward(run& r) {
  const value& out = *output_;
  const std::size_t rows = table_->sparse ? table_->sparse->count : static_cast<std::size_t>(table_->info.shape[0]);
  const auto parts = static_cast<std::size_t>(dev_.threads);
  parallel(dev_, parts, [&](std::size_t part) {
    const std::size_t first = rows * part / parts, last = rows * (part + 1) / parts;
    if (!adds(r, *table_)) std::fill(table_->gradient + first * dim_, table_->gradient + last * dim_, 0.0F);
    for (std::size_t s = 0; s < batch_; ++s)
      dev_.rows->scatter_add(table_->gradient, dim_, at_ + s * ids_, ids_, out.gradient + s * out.stride,
                             sum_ ? 0 : dim_, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last));
  });
}

double embedding::flops() const {
  return 2.0 * static_cast<double>(ids_ * dim_); // a sum in either case; copies are not counted
}

} // namespace onednn
