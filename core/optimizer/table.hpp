// SPDX-License-Identifier: Apache-2.0
//
// What one rank holds of a sparse table: the rows r with r mod shards == shard, each with its optimiser's state and, at
// times, a gradient that waits for apply(). A row takes memory from the moment when it is first asked for, so that a
// table may be larger than the machine. What a row becomes does not depend on which others are there.
//
// One thread at a time: [loop], or [main] before the first step.
#pragma once

#include "memory/arithmetic.hpp"
#include "optimizer/rule.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace regatta {

class row_table {
public:
  using norm = arithmetic::norm;
  using row_numbers = std::span<const std::int64_t>;
  // Writes how rows of the table start, one after the other.
  using init_function = std::function<void(std::span<const std::uint64_t> rows, float* out)>;

  struct shape {
    std::uint64_t rows, row; // of the whole table; elements of one
    std::uint64_t shards = 1, shard = 0;
    float decay = 1, lr_scale = 1;
  };

  // `rule` outlives the table.
  row_table(const update_rule& rule, const shape& s, init_function init);
  ~row_table();
  row_table(const row_table&) = delete;
  row_table& operator=(const row_table&) = delete;

  // All take n row numbers, each owned by this rank (else throws failure, plugin, and nothing is changed) and, but for
  // add(), named once; values are [n, row]. Memory is allocated for rows that are new, and until the largest number of
  // waiting gradients has been seen.
  void read(row_numbers rows, float* out);
  // Where the weights of the rows lie, for good; the list, until the next call.
  std::span<const float* const> places(row_numbers rows);
  // The rows' waiting gradients += `gradients`, in the order of the calls.
  void add(row_numbers rows, const float* gradients);
  // Updates every row whose gradient waits. With optimizer.clip_norm the update itself waits for commit(): until then
  // nothing may be added.
  void apply(std::uint64_t step);
  // add(), then apply(), in one pass where nothing else waits.
  void apply(row_numbers rows, const float* gradients, std::uint64_t step);
  // The rows' weights += a * source; no optimiser.
  void write(row_numbers rows, float a, const float* source);

  // As optimizer::partial() and commit(); the rows need not have been applied in this step.
  norm partial() const noexcept { return norm_; }
  void commit(const norm& total, std::uint64_t step);

  std::uint64_t held() const noexcept { return held_; } // rows that take memory
  std::uint64_t bytes() const noexcept;
  // Rows whose weights changed since their start, ascending.
  void for_each_changed(const std::function<void(std::uint64_t row, std::span<const float> weights)>& f) const;

private:
  static constexpr std::uint64_t page_rows = 1024;
  // What stands behind the weights and the state of a row.
  struct tail {
    std::uint32_t updates;      // by the optimiser: Adam's t
    std::uint32_t waiting : 31; // index into waiting_, from 1; 0: no gradient waits
    std::uint32_t changed : 1;  // it is not as it started
  };
  using page = std::array<float*, page_rows>;
  struct free_memory {
    void operator()(void* p) const noexcept;
  };

  float* find(std::uint64_t local) const noexcept; // row / shards
  tail& tail_of(float* record) const noexcept { return *reinterpret_cast<tail*>(record + (1 + states_) * shape_.row); }
  float* make_record();
  void prefetch(row_numbers rows, std::size_t at) const noexcept;
  void locate(row_numbers rows);
  void make_missing(row_numbers rows);
  // How rows are updated in one call: the constants of a step, Adam's for every t.
  struct pass {
    double lr, factor;
    update_rule::coefficients same_for_all;
  };
  pass pass_of(std::uint64_t step, double factor) const noexcept;
  tail& note_update(float* record) const noexcept;
  void update(const pass& p, float* record, const float* gradient);
  void update_waiting(std::uint64_t step, double factor);

  const update_rule& rule_;
  shape shape_;
  init_function init_;
  std::uint64_t states_, record_bytes_, chunk_bytes_;
  std::vector<std::unique_ptr<page>> pages_; // by row / shards / page_rows; null: none of its rows is held
  std::vector<std::unique_ptr<void, free_memory>> chunks_;
  std::uint64_t chunk_used_ = 0, held_ = 0;
  std::vector<std::int64_t> located_; // the rows of the call under way, or the last one
  std::vector<float*> records_;       // theirs
  std::vector<std::uint64_t> missing_;
  std::vector<float> started_;
  std::vector<float*> waiting_;  // records whose gradient waits
  std::vector<float> gradients_; // theirs
  bool committing_ = false;      // applied, the norm not yet known
  norm norm_;
  std::vector<update_rule::bias_correction> corrections_; // by t - 1
};

} // namespace regatta
