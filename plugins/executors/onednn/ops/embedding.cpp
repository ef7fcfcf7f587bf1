// SPDX-License-Identifier: Apache-2.0
#include "ops/embedding.hpp"

#include "../common/weights.hpp"
#include "runtime/memory_plan.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace onednn {

const std::int32_t* checked_indices(const run& r, const value& input, std::size_t samples, std::size_t range) {
  return executors::checked_indices(*r.batch, static_cast<std::size_t>(input.input), input.name, input.elements(),
                                    samples, range);
}

token_embedding::token_embedding(std::string name, value* indices, value* out, weight* table, weight* positions,
                                 double scale, bool sinusoids, const device& dev)
    : op(std::move(name), {indices}, out), dev_(dev), table_(table), positions_(positions),
      scale_(static_cast<float>(scale)) {
  weights_ = {table};
  if (positions) weights_.push_back(positions);
  if (sinusoids) sinusoids_.resize(out->elements());
}

void token_embedding::plan(memory_plan& m) {
  batch_ = m.batch();
  const std::size_t size = output_->features();
  for (std::size_t i = 0; i < sinusoids_.size(); ++i) {
    const std::size_t t = i / size, f = i % size;
    const double angle =
        static_cast<double>(t) / std::pow(10000.0, static_cast<double>(f - f % 2) / static_cast<double>(size));
    sinusoids_[i] = static_cast<float>(f % 2 ? std::cos(angle) : std::sin(angle));
  }
}

void token_embedding::forward(run& r) {
  const std::size_t samples = executors::valid_samples(*r.batch);
  indices_ = checked_indices(r, *inputs_[0].from, samples, rows());
  const std::size_t length = output_->positions(), size = output_->features();
  std::fill_n(output_->data + samples * length * size, (batch_ - samples) * length * size, 0.0F);
  parallel(dev_, samples, [&](std::size_t s) {
    for (std::size_t t = 0; t < length; ++t) {
      const auto row = static_cast<std::size_t>(indices_[s * length + t]);
      float* y = output_->data + (s * length + t) * size;
      const float* start = !sinusoids_.empty() ? sinusoids_.data() + t * size
                           : positions_        ? positions_->data + t * size
                                               : nullptr;
      if (start)
        std::memcpy(y, start, size * sizeof(float));
      else
        std::fill_n(y, size, 0.0F);
      if (!sinusoids_.empty() && positions_) dev_.kernels->elementwise.axpy(y, 1, positions_->data + t * size, size);
      dev_.kernels->elementwise.axpy(y, scale_, table_->data + row * size, size);
    }
  });
}

// Each thread updates some of the features of all rows, so that sums do not depend on the number of threads.
void token_embedding::backward(run& r) {
  const std::size_t length = output_->positions(), size = output_->features();
  const auto threads = static_cast<std::size_t>(dev_.threads);
  for (weight* w : weights_)
    if (!adds(r, *w)) std::fill_n(w->gradient, rg::storage_of(w->info), 0.0F);
  parallel(dev_, threads, [&](std::size_t slice) {
    const std::size_t first = size * slice / threads, count = size * (slice + 1) / threads - first;
    for (std::size_t i = 0; i < batch_ * length; ++i) {
      const float* g = output_->gradient + i * size + first;
      dev_.kernels->elementwise.axpy(table_->gradient + static_cast<std::size_t>(indices_[i]) * size + first, scale_, g,
                                     count);
      if (positions_) dev_.kernels->elementwise.axpy(positions_->gradient + i % length * size + first, 1, g, count);
    }
  });
}

void take_rows(executors::graph_tensor& table, const rg_table_rows& rows) {
  table.sparse->take(table.info, table.index, rows);
  table.data = const_cast<float*>(rg::weights_of(rows)); // no op writes to it
  table.gradient = rg::gradients_of(rows);
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
  slot_ = m.request_kept(batch_ * ids_ * sizeof(std::uint32_t));
}

void embedding::attach(const memory_plan& m) {
  at_ = m.at_slot<std::uint32_t>(slot_);
}

void embedding::find_rows(const run& r) {
  const rg_batch& b = *r.batch;
  const auto* ids = static_cast<const std::int32_t*>(b.inputs[inputs_[0].from->input]);
  const std::size_t count = executors::valid_samples(b) * ids_;
  executors::check_ids(table_->info, b, ids, count, ids_);
  if (table_->sparse)
    dev_.kernels->embedding.find(table_->sparse->index->words(), ids, count, at_);
  else
    std::copy_n(ids, count, at_);
  std::fill(at_ + count, at_ + batch_ * ids_, no_row);
  for (std::size_t i = 0; i < count; ++i)
    if (ids[i] == padding_)
      at_[i] = no_row;
    else if (at_[i] == no_row)
      executors::fail_missing_row(table_->info, b, ids[i]);
}

void embedding::forward(run& r) {
  find_rows(r);
  const value& out = *output_;
  auto* look_up = sum_ ? dev_.kernels->embedding.gather_sum : dev_.kernels->embedding.gather;
  parallel(dev_, batch_, [&](std::size_t s) {
    float* y = out.data + s * out.stride;
    look_up(table_->data, dim_, at_ + s * ids_, ids_, y);
    std::fill(y + out.channels(), y + out.stride, 0.0F);
  });
}

// Each thread updates its own range of rows and reads all samples in order, so that sums do not depend on scheduling.
void embedding::backward(run& r) {
  const value& out = *output_;
  const std::size_t rows = table_->sparse ? table_->sparse->count : static_cast<std::size_t>(table_->info.shape[0]);
  const auto slices = static_cast<std::size_t>(dev_.threads);
  parallel(dev_, slices, [&](std::size_t slice) {
    const std::size_t first = rows * slice / slices, last = rows * (slice + 1) / slices;
    if (!adds(r, *table_)) std::fill(table_->gradient + first * dim_, table_->gradient + last * dim_, 0.0F);
    for (std::size_t s = 0; s < batch_; ++s)
      dev_.kernels->embedding.scatter_add(table_->gradient, dim_, at_ + s * ids_, ids_, out.gradient + s * out.stride,
                                          sum_ ? 0 : dim_, static_cast<std::uint32_t>(first),
                                          static_cast<std::uint32_t>(last));
  });
}

double embedding::flops() const {
  return 2.0 * static_cast<double>(ids_ * dim_); // a sum in either case; copies are not counted
}

} // namespace onednn
