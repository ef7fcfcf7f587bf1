// SPDX-License-Identifier: Apache-2.0
#include "ops/embedding.hpp"

#include "../common/weights.hpp"
#include "kernels/channel_sums.hpp"
#include "kernels/embedding.hpp"

#include <cmath>

namespace cudnn {

void grouped_ids::reserve(staging& s, std::size_t ids, std::size_t rows) {
  most_ = std::min(ids, rows);
  sorted_.emplace(ids);
  header_.reserve(s, 1);
  rows_.reserve(s, most_);
  begin_.reserve(s, most_ + 1);
  order_.reserve(s, ids);
}

void grouped_ids::vary(const std::int32_t* ids, std::size_t count) {
  *header_.host() = sorted_->sort(ids, count, rows_.host(), begin_.host(), order_.host());
}

namespace {

kernels::row_groups of(const grouped_ids& n) {
  return {n.count(), n.rows(), n.begin(), n.order(), n.most()};
}

} // namespace

token_embedding::token_embedding(std::string name, value* indices, value* out, weight* table, weight* position_table,
                                 double scale, bool sinusoids)
    : op(std::move(name), {indices}, out), table_(table), position_table_(position_table),
      scale_(static_cast<float>(scale)), sinusoids_(sinusoids) {
  weights_ = {table};
  if (position_table) weights_.push_back(position_table);
}

// Computes the sinusoidal codes of positions (Vaswani et al. 2017, section 3.5).
void token_embedding::prepare(device& d) {
  grouped_.reserve(d.varying, ids(), static_cast<std::size_t>(table_->info.shape[0]));
  if (position_table_)
    d.scratch.reserve(kernels::partials_of({static_cast<std::uint32_t>(output_->elements()), 1, true}, batch) *
                      sizeof(float));
  if (!sinusoids_) return;
  const std::size_t size = features(*output_);
  std::vector<float> codes(output_->elements());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const std::size_t t = i / size, f = i % size;
    const double angle =
        static_cast<double>(t) / std::pow(10000.0, static_cast<double>(f - f % 2) / static_cast<double>(size));
    codes[i] = static_cast<float>(f % 2 ? std::cos(angle) : std::sin(angle));
  }
  codes_.reserve(codes.size() * sizeof(float));
  d.upload(codes_.get(), codes.data(), codes.size() * sizeof(float));
  d.synchronize(); // the copy must end before `codes` is destroyed
}

void token_embedding::vary(const run& r) {
  const value& in = *inputs_[0].from;
  const auto* indices = executors::checked_indices(r.batch, static_cast<std::size_t>(in.input), in.name, in.elements(),
                                                   r.samples(), static_cast<std::size_t>(table_->info.shape[0]));
  if (r.training) grouped_.vary(indices, ids());
}

void token_embedding::forward(device& d, const run& r) {
  const kernels::gather_args g{.table = table_->data,
                               .ids = inputs_[0].from->indices(),
                               .size = features(*output_),
                               .scale = scale_,
                               .first = sinusoids_ ? codes_.get() : nullptr,
                               .second = position_table_ ? position_table_->data : nullptr,
                               .period = positions(*output_)};
  // The ids of padding samples may be no rows.
  kernels::gather(d.stream, d.computes.type, g, y(), r.samples() * positions(*output_));
}

void token_embedding::backward(device& d, const run& r) {
  if (!adds(r, *table_)) d.clear(table_->gradient, table_->elements * sizeof(float));
  kernels::scatter(d.stream, d.computes.type, of(grouped_), dy(), 1, features(*output_), scale_, table_->gradient);
  if (!position_table_) return;
  // The gradient of a position's row is a sum over the samples. Rows behind the last position are never used.
  const std::size_t used = output_->elements();
  if (!adds(r, *position_table_))
    d.clear(position_table_->gradient + used, (position_table_->elements - used) * sizeof(float));
  kernels::channel_sums(d.stream, d.computes.type, dy(), {static_cast<std::uint32_t>(used), 1, true}, batch,
                        position_table_->gradient, adds(r, *position_table_), d.scratch.get());
}

lookup::lookup(std::string name, value* ids, value* out, weight* table, std::int64_t padding, bool sum)
    : op(std::move(name), {ids}, out), table_(table), padding_(padding), sum_(sum), ids_(ids->elements()) {
  weights_ = {table};
  if (table->sparse) table->sparse->lookups.push_back({.input = ids->input, .ids = ids_, .padding = padding});
}

void lookup::prepare(device& d) {
  at_.reserve(d.varying, batch * ids_);
  grouped_.reserve(d.varying, batch * ids_, static_cast<std::size_t>(table_->info.shape[0]));
}

void lookup::vary(const run& r) {
  const auto* ids = static_cast<const std::int32_t*>(r.batch.inputs[inputs_[0].from->input]);
  const std::size_t count = executors::valid_samples(r.batch) * ids_;
  executors::check_ids(table_->info, r.batch, ids, count, ids_);
  std::int32_t* at = at_.host();
  for (std::size_t i = 0; i < count; ++i) {
    at[i] = -1;
    if (ids[i] == padding_) continue;
    if (!table_->sparse) {
      at[i] = ids[i];
      continue;
    }
    const executors::row_word word = table_->sparse->index->words()[ids[i] / 64];
    const std::uint64_t bit = std::uint64_t{1} << ids[i] % 64;
    if (!(word.bits & bit)) executors::fail_missing_row(table_->info, r.batch, ids[i]);
    at[i] = static_cast<std::int32_t>(word.before) + __builtin_popcountll(word.bits & (bit - 1));
  }
  std::fill(at + count, at + batch * ids_, -1);
  if (r.training) grouped_.vary(at, batch * ids_);
}

void lookup::forward(device& d, const run&) {
  const kernels::gather_args g{.table = table_->data,
                               .ids = at_.device(),
                               .size = static_cast<std::uint32_t>(table_->row()),
                               .scale = 1,
                               .first = nullptr,
                               .second = nullptr,
                               .period = 1};
  if (sum_)
    kernels::gather_sums(d.stream, d.computes.type, g, static_cast<std::uint32_t>(ids_), y(), batch);
  else
    kernels::gather(d.stream, d.computes.type, g, y(), batch * ids_);
}

void lookup::backward(device& d, const run& r) {
  // The rows of a sparse table have been cleared before the step, for their number in this step.
  if (!table_->sparse && !adds(r, *table_)) d.clear(table_->gradient, table_->elements * sizeof(float));
  kernels::scatter(d.stream, d.computes.type, of(grouped_), dy(), sum_ ? static_cast<std::uint32_t>(ids_) : 1,
                   static_cast<std::uint32_t>(table_->row()), 1, table_->gradient);
}

} // namespace cudnn
