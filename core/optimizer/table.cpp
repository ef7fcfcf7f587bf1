// SPDX-License-Identifier: Apache-2.0
#include "optimizer/table.hpp"

#include "base/failure.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

namespace regatta {
namespace {

constexpr std::uint64_t cache_line = 64, huge_page = std::uint64_t{2} << 20;
// How many rows ahead memory is prefetched: copying that many rows hides the memory latency.
constexpr std::size_t ahead = 12;

} // namespace

row_table::row_table(const update_rule& rule, const shape& s, init_function init)
    : rule_(rule), shape_(s), init_(std::move(init)), states_(static_cast<std::uint64_t>(rule.states())) {
  if (!s.rows || !s.row || !s.shards || s.shard >= s.shards)
    throw failure(exit_code::plugin,
                  fmt::format("a table of {} rows of {} elements, shard {} of {}", s.rows, s.row, s.shard, s.shards));
  // Long rows begin at cache lines; rows of a few elements are packed.
  const std::uint64_t needed = (1 + states_) * s.row * sizeof(float) + sizeof(tail);
  const std::uint64_t alignment = needed >= 4 * cache_line ? cache_line : alignof(tail);
  record_bytes_ = (needed + alignment - 1) / alignment * alignment;
  const std::uint64_t mine = (s.rows - s.shard + s.shards - 1) / s.shards;
  chunk_bytes_ = std::max(record_bytes_, std::min(huge_page, mine * record_bytes_));
  pages_.resize((mine + page_rows - 1) / page_rows);
  if (rule.counts_updates()) corrections_.reserve(1024);
}

inline float* row_table::find(std::uint64_t local) const noexcept {
  const page* p = pages_[local / page_rows].get();
  return p ? (*p)[local % page_rows] : nullptr;
}

float* row_table::make_record() {
  if (chunks_.empty() || chunk_used_ + record_bytes_ > chunk_bytes_) {
    chunks_.push_back(allocate_aligned(chunk_bytes_)); // in huge pages: rows are accessed in random order
    chunk_used_ = 0;
  }
  auto* record = reinterpret_cast<float*>(static_cast<char*>(chunks_.back().get()) + chunk_used_);
  chunk_used_ += record_bytes_;
  ++held_;
  return record;
}

// Finds the records of `rows` and makes the missing ones.
void row_table::locate(row_numbers rows) {
  if (std::ranges::equal(rows, located_)) return; // a step updates the rows that it has just read
  located_.clear();
  records_.resize(rows.size());
  const shape s = shape_; // a copy: the compiler must assume that writing records_ changes members
  float** const records = records_.data();
  bool all = true;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<std::uint64_t>(rows[i]);
    if (row >= s.rows || (s.shards != 1 && row % s.shards != s.shard))
      throw failure(exit_code::plugin,
                    fmt::format("row {} was asked for: this rank holds rows r < {} with r mod {} = {}", rows[i], s.rows,
                                s.shards, s.shard));
    records[i] = find(s.shards == 1 ? row : row / s.shards);
    all &= records[i] != nullptr;
  }
  if (!all) make_missing(rows);
  located_.assign(rows.begin(), rows.end());
}

void row_table::make_missing(row_numbers rows) {
  missing_.clear();
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (!records_[i]) missing_.push_back(static_cast<std::uint64_t>(rows[i]));
  started_.resize(missing_.size() * shape_.row);
  init_(missing_, started_.data());
  for (std::size_t m = 0; m < missing_.size(); ++m) {
    const std::uint64_t local = missing_[m] / shape_.shards;
    auto& p = pages_[local / page_rows];
    if (!p) p = std::make_unique<page>();
    float*& record = (*p)[local % page_rows];
    if (record) continue; // the row was named twice
    record = make_record();
    std::memcpy(record, started_.data() + m * shape_.row, shape_.row * sizeof(float));
  }
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (!records_[i]) records_[i] = find(static_cast<std::uint64_t>(rows[i]) / shape_.shards);
}

void row_table::prefetch(row_numbers rows, std::size_t at) const noexcept {
  if (at >= rows.size()) return;
  const char* record = reinterpret_cast<const char*>(records_[at]);
  const std::uint64_t bytes = std::min<std::uint64_t>(record_bytes_, 32 * cache_line);
  for (std::uint64_t b = 0; b < bytes; b += cache_line) __builtin_prefetch(record + b, 1, 2);
}

void row_table::read(row_numbers rows, float* out) {
  locate(rows);
  const std::uint64_t row = shape_.row;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    prefetch(rows, i + ahead);
    std::memcpy(out + i * row, records_[i], row * sizeof(float));
  }
}

std::span<const void* const> row_table::addresses(row_numbers rows) {
  locate(rows);
  addresses_.assign(records_.begin(), records_.end());
  return addresses_;
}

void row_table::add(row_numbers rows, const float* gradients) {
  if (committing_) throw failure(exit_code::plugin, "gradients of rows were added between their apply and its commit");
  locate(rows);
  const std::uint64_t row = shape_.row;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    prefetch(rows, i + ahead);
    const float* g = gradients + i * row;
    tail& t = tail_of(records_[i]);
    if (t.waiting) {
      arithmetic::add(std::span(gradients_.data() + (t.waiting - 1) * row, row), {g, row});
    } else {
      waiting_.push_back(records_[i]);
      t.waiting = static_cast<std::uint32_t>(waiting_.size()) & 0x7fffffffu;
      gradients_.insert(gradients_.end(), g, g + row);
    }
  }
}

void row_table::apply(std::uint64_t step) {
  if (rule_.clips()) {
    committing_ = true;
    norm_ = arithmetic::sum_of_squares(gradients_);
  } else {
    update_waiting(step, 1);
  }
}

void row_table::apply(row_numbers rows, const float* gradients, std::uint64_t step) {
  if (!waiting_.empty() || rule_.clips()) {
    add(rows, gradients);
    return apply(step);
  }
  locate(rows);
  const pass p = pass_of(step, 1);
  if (rule_.counts_updates()) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      prefetch(rows, i + ahead);
      update(p, records_[i], gradients + i * shape_.row);
    }
    return;
  }
  for (std::size_t i = 0; i < rows.size(); i += ahead) {
    const std::size_t n = std::min(ahead, rows.size() - i);
    for (std::size_t k = i; k < i + n; ++k) {
      prefetch(rows, k + ahead);
      note_update(records_[k]);
    }
    optimizer_kernels::update_rows(p.same_for_all, records_.data() + i, gradients + i * shape_.row, shape_.row, n);
  }
}

void row_table::write(row_numbers rows, float a, const float* source) {
  locate(rows);
  const std::uint64_t row = shape_.row;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    prefetch(rows, i + ahead);
    arithmetic::axpy(std::span(records_[i], row), a, {source + i * row, row});
    tail_of(records_[i]).changed = 1;
  }
}

void row_table::commit(const norm& total, std::uint64_t step) {
  if (!committing_) return;
  if (const auto factor = rule_.clip(total)) update_waiting(step, *factor);
  for (float* record : waiting_) tail_of(record).waiting = 0;
  waiting_.clear();
  gradients_.clear();
  committing_ = false;
  norm_ = {};
}

row_table::pass row_table::pass_of(std::uint64_t step, double factor) const noexcept {
  const double lr = rule_.lr(step);
  return {lr, factor, rule_.of(lr, {}, factor, shape_.decay, shape_.lr_scale)};
}

row_table::tail& row_table::note_update(float* record) const noexcept {
  tail& t = tail_of(record);
  ++t.updates;
  t.changed = 1;
  return t;
}

void row_table::update(const pass& p, float* record, const float* gradient) {
  const tail& t = note_update(record);
  auto c = p.same_for_all;
  if (rule_.counts_updates()) {
    while (corrections_.size() < t.updates) corrections_.push_back(rule_.correction(corrections_.size() + 1));
    c = rule_.of(p.lr, corrections_[t.updates - 1], p.factor, shape_.decay, shape_.lr_scale);
  }
  optimizer_kernels::update_rows(c, &record, gradient, shape_.row, 1);
}

void row_table::update_waiting(std::uint64_t step, double factor) {
  const pass p = pass_of(step, factor);
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    update(p, waiting_[i], gradients_.data() + i * shape_.row);
    tail_of(waiting_[i]).waiting = 0;
  }
  waiting_.clear();
  gradients_.clear();
}

std::uint64_t row_table::bytes() const noexcept {
  return chunks_.size() * chunk_bytes_ + gradients_.capacity() * sizeof(float);
}

void row_table::for_each_changed(
    const std::function<void(std::uint64_t row, std::span<const float> weights)>& f) const {
  for (std::size_t p = 0; p < pages_.size(); ++p) {
    if (!pages_[p]) continue;
    for (std::uint64_t i = 0; i < page_rows; ++i)
      if (float* record = (*pages_[p])[i]; record && tail_of(record).changed)
        f((p * page_rows + i) * shape_.shards + shape_.shard, {record, shape_.row});
  }
}

} // namespace regatta
