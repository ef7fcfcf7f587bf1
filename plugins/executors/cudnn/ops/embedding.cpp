// SPDX-License-Identifier: Apache-2.0
#include "ops/embedding.hpp"

#include "../common/weights.hpp"
#include "kernels/embedding.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/normalization.hpp"
#include "kernels/attention.hpp"

#include <cmath>

namespace cudnn {

// -------------------------------------------------------------------------------------------------- layer norm ---

layer_norm::layer_norm(std::string name, value* in, value* out, weight* scale, weight* bias, double epsilon)
    : op(std::move(name), {in}, out), scale_(scale), bias_(bias), epsilon_(static_cast<float>(epsilon)) {
  weights_ = {scale, bias};
}

void layer_norm::prepare(device& d) {
  mean_.reserve(rows() * sizeof(float));
  inverse_.reserve(rows() * sizeof(float));
  d.scratch.reserve(kernels::layer_norm_partials(rows(), features(*output_)) * sizeof(float));
}

void layer_norm::forward(device& d, const run&) {
  const kernels::layer_normalising n{rows(),      features(*output_), scale_->data, bias_->data,
                                     mean_.get(), inverse_.get(),     epsilon_};
  kernels::layer_norm(d.stream, d.computes.type, n, x(), y());
}

void layer_norm::backward(device& d, const run& r) {
  const kernels::layer_normalising n{rows(),      features(*output_), scale_->data, bias_->data,
                                     mean_.get(), inverse_.get(),     epsilon_};
  const kernels::layer_norm_gradients g{.dx = dx(),
                                        .dscale = scale_->gradient,
                                        .dbias = bias_->gradient,
                                        .add_dx = inputs_[0].add,
                                        .add_scale = adds(r, *scale_),
                                        .add_bias = adds(r, *bias_)};
  kernels::layer_norm_gradient(d.stream, d.computes.type, n, x(), dy(), g, d.scratch.get());
}

// -------------------------------------------------------------------------------------- selection of positions ---

void take_places::vary(const run& r) {
  if (inputs_.size() < 2) return;
  const value& in = *inputs_[1].from;
  executors::checked_indices(r.batch, static_cast<std::size_t>(in.input), in.name, in.elements(), batch,
                             places(*inputs_[0].from));
}

void take_places::forward(device& d, const run&) {
  const kernels::taking k{batch, places(*inputs_[0].from), places(*output_), features(*output_),
                          inputs_.size() > 1 ? inputs_[1].from->indices() : nullptr};
  kernels::take_places(d.stream, d.computes.type, k, x(), y());
}

void take_places::backward(device& d, const run&) {
  if (!dx()) return;
  const kernels::taking k{batch, places(*inputs_[0].from), places(*output_), features(*output_),
                          inputs_.size() > 1 ? inputs_[1].from->indices() : nullptr};
  kernels::take_places_gradient(d.stream, d.computes.type, k, dy(), dx(), inputs_[0].add);
}

// ------------------------------------------------------------------------------------------------------ tables ---

void named_rows::ask(staging& s, std::size_t ids, std::size_t rows) {
  most_ = std::min(ids, rows);
  sorted_.emplace(ids);
  header_.ask(s, 1);
  rows_.ask(s, most_);
  begin_.ask(s, most_ + 1);
  order_.ask(s, ids);
}

void named_rows::vary(const std::int32_t* ids, std::size_t count) {
  *header_.host() = sorted_->sort(ids, count, rows_.host(), begin_.host(), order_.host());
}

namespace {

kernels::naming of(const named_rows& n) {
  return {n.count(), n.rows(), n.begin(), n.order(), n.most()};
}

} // namespace

token_embedding::token_embedding(std::string name, value* indices, value* out, weight* table, weight* places,
                                 double scale, bool sinusoids)
    : op(std::move(name), {indices}, out), table_(table), places_(places), scale_(static_cast<float>(scale)),
      sinusoids_(sinusoids) {
  weights_ = {table};
  if (places) weights_.push_back(places);
}

// Computes the sinusoidal codes of positions (Vaswani et al. 2017, section 3.5).
void token_embedding::prepare(device& d) {
  named_.ask(d.varying, ids(), static_cast<std::size_t>(table_->info.shape[0]));
  if (places_)
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
  d.settle(); // the copy must end before `codes` is destroyed
}

void token_embedding::vary(const run& r) {
  const value& in = *inputs_[0].from;
  const auto* indices = executors::checked_indices(r.batch, static_cast<std::size_t>(in.input), in.name, in.elements(),
                                                   batch, static_cast<std::size_t>(table_->info.shape[0]));
  if (r.training) named_.vary(indices, ids());
}

void token_embedding::forward(device& d, const run&) {
  const kernels::gathering g{.table = table_->data,
                             .ids = inputs_[0].from->indices(),
                             .size = features(*output_),
                             .scale = scale_,
                             .first = sinusoids_ ? codes_.get() : nullptr,
                             .second = places_ ? places_->data : nullptr,
                             .period = places(*output_)};
  kernels::gather(d.stream, d.computes.type, g, y(), ids());
}

void token_embedding::backward(device& d, const run& r) {
  if (!adds(r, *table_)) d.clear(table_->gradient, table_->elements * sizeof(float));
  kernels::scatter(d.stream, d.computes.type, of(named_), dy(), 1, features(*output_), scale_, table_->gradient);
  if (!places_) return;
  // The gradient of a position's row is a sum over the samples. Rows behind the last position are never used.
  const std::size_t used = output_->elements();
  if (!adds(r, *places_)) d.clear(places_->gradient + used, (places_->elements - used) * sizeof(float));
  kernels::channel_sums(d.stream, d.computes.type, dy(), {static_cast<std::uint32_t>(used), 1, true}, batch,
                        places_->gradient, adds(r, *places_), d.scratch.get());
}

lookup::lookup(std::string name, value* ids, value* out, weight* table, std::int64_t padding, bool sum)
    : op(std::move(name), {ids}, out), table_(table), padding_(padding), sum_(sum), ids_(ids->elements()) {
  weights_ = {table};
  if (table->sparse) table->sparse->lookups.push_back({.input = ids->input, .ids = ids_, .padding = padding});
}

void lookup::prepare(device& d) {
  at_.ask(d.varying, batch * ids_);
  named_.ask(d.varying, batch * ids_, static_cast<std::size_t>(table_->info.shape[0]));
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
    if (!(word.bits & bit)) executors::not_brought(table_->info, r.batch, ids[i]);
    at[i] = static_cast<std::int32_t>(word.before) + __builtin_popcountll(word.bits & (bit - 1));
  }
  std::fill(at + count, at + batch * ids_, -1);
  if (r.training) named_.vary(at, batch * ids_);
}

void lookup::forward(device& d, const run&) {
  const kernels::gathering g{.table = table_->data,
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
  kernels::scatter(d.stream, d.computes.type, of(named_), dy(), sum_ ? static_cast<std::uint32_t>(ids_) : 1,
                   static_cast<std::uint32_t>(table_->row()), 1, table_->gradient);
}

} // namespace cudnn
