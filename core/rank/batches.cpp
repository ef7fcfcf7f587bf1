// SPDX-License-Identifier: Apache-2.0
#include "rank/batches.hpp"

#include "base/failure.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace regatta {

batches::batches(session& s)
    : session_(s), micros_(s.job.micro_batches()), samples_(s.job.micro_batch()),
      first_(static_cast<std::uint64_t>(s.cluster.worker) * s.job.batch), counted_(s.model().info().count_kinds > 0),
      summed_(counted_ && s.synchronous()), whole_(counted_ || s.model().has_tables()),
      constant_(s.data().constant() && micros_ == 1) {
  const std::uint32_t kinds = s.model().info().count_kinds;
  if (counted_ && !s.model().functions().count)
    throw failure(exit_code::plugin,
                  fmt::format("model {} has {} kinds of counts, but no count()", s.job.config.model.id, kinds));
  const std::uint64_t turns = s.device() && !constant_ ? 3 : 1;
  slots_.resize((whole_ ? turns : 1) + summed_);
  for (slot& one : slots_) {
    for (std::uint64_t m = 0; m < (whole_ ? micros_ : turns); ++m)
      one.micros.emplace_back(s.model().inputs(), samples_, s.device());
    one.mine.resize(kinds);
    one.global.resize(kinds);
  }
  const std::uint32_t tokens = s.model().info().tokens_input;
  if (s.job.config.train.batch_unit == "tokens" && tokens > 0) {
    tokens_input_ = tokens - 1;
    const rg_input& in = s.model().inputs()[tokens_input_];
    token_positions_ = samples_;
    for (std::uint32_t d = 0; d < in.ndim; ++d) token_positions_ *= static_cast<std::uint64_t>(in.shape[d]);
  }
  s.data().plan({s.job.global_batch(), first_, samples_, micros_});
}

void batches::attend(session& s, std::uint64_t step) {
  const std::uint32_t kinds = s.model().info().count_kinds;
  if (kinds > 0 && (s.synchronous() || step == 0)) s.control.sum("counts", std::vector<double>(kinds, 0.0));
}

void batches::read(std::uint64_t step, std::uint64_t m, batch_memory& into) {
  session_.data().fill(step, session_.job.global_batch(), first_ + m * samples_, samples_, into.pointers());
}

batch_memory& batches::memory(std::uint64_t step, std::uint64_t m) {
  std::vector<batch_memory>& micros = of(step).micros;
  return micros[(whole_ ? m : step * micros_ + m) % micros.size()];
}

void batches::read_all(std::uint64_t step) {
  slot& into = of(step);
  // A constant source fills a buffer once. That does not hold if several micro-batches share one buffer: each has other
  // samples.
  if (into.filled && session_.data().constant() && (constant_ || whole_)) return;
  for (std::uint64_t m = 0; m < (whole_ ? micros_ : 1); ++m) read(step, m, memory(step, m));
  into.filled = true;
}

void batches::count(std::uint64_t step, slot& of) {
  std::fill(of.mine.begin(), of.mine.end(), 0);
  for (const batch_memory& memory : of.micros) {
    const rg_batch b = memory.batch();
    session_.model().check_status(session_.model().functions().count(session_.model().self(), &b, of.mine.data()),
                                  "count");
  }
  for (std::size_t k = 0; k < of.mine.size(); ++k) of.global[k] = of.mine[k] * session_.cluster.workers;
  if (!sums_counts(step)) return;
  session_.control.begin_sum("counts", {of.mine.begin(), of.mine.end()});
  summing_ = &of;
}

void batches::count_tokens(const rg_batch& b) {
  ++micros_counted_;
  const auto count = [&](const auto* values) {
    const auto all = static_cast<std::ptrdiff_t>(token_positions_);
    return static_cast<std::uint64_t>(all - std::count(values, values + all, 0));
  };
  const void* const values = b.inputs[tokens_input_];
  tokens_ += session_.model().inputs()[tokens_input_].type == RG_I64 ? count(static_cast<const std::int64_t*>(values))
                                                                     : count(static_cast<const std::int32_t*>(values));
}

void batches::finish_sum() {
  if (!summing_) return;
  const std::vector<double> sums = session_.control.end_sum();
  for (std::size_t k = 0; k < sums.size(); ++k) summing_->global[k] = static_cast<std::uint64_t>(sums[k]);
  summing_ = nullptr;
}

void batches::prepare(std::uint64_t step) {
  slot& s = of(step);
  if (std::exchange(s.ahead, true)) return;
  read_all(step);
  if (counted_) count(step, s);
}

void batches::begin(std::uint64_t step) {
  step_ = step;
  tokens_ = micros_counted_ = 0;
  prepare(step);
  of(step).ahead = false;
  finish_sum();
  if (summed_) read_ahead();
}

void batches::read_ahead() {
  if (step_ + 1 < end_) prepare(step_ + 1);
}

rg_batch batches::micro(std::uint64_t m) {
  batch_memory& memory = this->memory(step_, m);
  if (!whole_ && m) read(step_, m, memory);
  rg_batch b = memory.batch();
  if (token_positions_ && m == micros_counted_) count_tokens(b);
  b.step = step_;
  b.first_sample = first_ + m * samples_;
  b.global_samples = session_.job.global_batch();
  b.seed = session_.job.config.seed;
  b.flags =
      (m ? RG_BATCH_ACCUMULATE : 0) | (m + 1 == micros_ ? RG_BATCH_LAST : 0) | (session_.device() ? RG_BATCH_HELD : 0);
  b.global_counts = counted_ ? of(step_).global.data() : nullptr;
  return b;
}

} // namespace regatta
