// SPDX-License-Identifier: Apache-2.0
//
// One rank's shard of a sparse table in host memory: the rows r with r mod shards == shard, each with its optimizer
// state and, at times, a gradient that waits for apply(). A row is allocated and initialised when it is first named in
// a call, so a table may be larger than the machine's memory. The values of a row do not depend on which other rows are
// held.
//
// One thread at a time: [loop], or [main] before the first step.
#pragma once

#include "memory/arithmetic.hpp"
#include "memory/regions.hpp"
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
  // Writes the initial weights of rows of the table to out [rows.size(), row]. Called from within the functions below;
  // the same row may be initialised twice, and must get the same values.
  using init_function = std::function<void(std::span<const std::uint64_t> rows, float* out)>;

  struct shape {
    std::uint64_t rows, row; // number of rows of the whole table; elements of a row
    std::uint64_t shards = 1, shard = 0;
    float decay = 1, lr_scale = 1; // of the tensor: factors on optimizer.weight_decay and on the learning rate
  };

  // `rule` must outlive the table. Throws failure (plugin) if `rows`, `row` or `shards` is 0, or `shard` >= `shards`.
  row_table(const update_rule& rule, const shape& s, init_function init);
  row_table(const row_table&) = delete;
  row_table& operator=(const row_table&) = delete;

  // These functions take n row numbers of the whole table; values are [n, row]. Each row must be in this shard, else
  // they throw failure (plugin) and change nothing. Only add() may name a row twice. They allocate memory for new rows,
  // and for more waiting gradients than were there before; they throw failure (run) or std::bad_alloc if there is not
  // enough. read() copies the rows' weights to `out`.
  void read(row_numbers rows, float* out);
  // Returns pointers to the weights of the rows, in their order. The weights never move; the list of pointers is valid
  // until the next call of a function that takes row numbers.
  std::span<const void* const> addresses(row_numbers rows);
  // Adds `gradients` to the rows' waiting gradients, in the order of the calls. Throws failure (plugin) between apply()
  // and commit() if the rule clips.
  void add(row_numbers rows, const float* gradients);
  // Updates every row whose gradient waits, with the learning rate of `step`. If the rule clips (optimizer.clip_norm),
  // only computes partial(), and the updates wait for commit().
  void apply(std::uint64_t step);
  // Like add() and then apply(step), in one pass if no other gradient waits.
  void apply(row_numbers rows, const float* gradients, std::uint64_t step);
  // Adds a * source to the rows' weights, without the optimizer.
  void write(row_numbers rows, float a, const float* source);

  // Returns the norm of the gradients that wait for commit(); zeros if apply() was not called since the last one.
  norm partial() const noexcept { return norm_; }
  // Executes the updates that wait since apply(), with the learning rate of `step` and gradients scaled so that their
  // norm over all owners is at most clip_norm. `total` is the sum of partial() over all owners, member by member. Drops
  // the updates if a gradient or the norm is not finite. Does nothing if none wait.
  void commit(const norm& total, std::uint64_t step);

  std::uint64_t held() const noexcept { return held_; } // rows that take memory
  // Returns the memory of rows, their state and waiting gradients, as allocated.
  std::uint64_t bytes() const noexcept;
  // Calls `f` with the number in the whole table and the weights of each row that was updated or written since
  // construction, in ascending order. `f` must not call the table.
  void for_each_changed(const std::function<void(std::uint64_t row, std::span<const float> weights)>& f) const;

private:
  static constexpr std::uint64_t page_rows = 1024;
  // Follows the weights and the state of a row in memory.
  struct tail {
    std::uint32_t updates;      // number of updates: Adam's t
    std::uint32_t waiting : 31; // index into waiting_, from 1; 0: no gradient waits
    std::uint32_t changed : 1;  // the row was updated or written
  };
  using page = std::array<float*, page_rows>;

  float* find(std::uint64_t local) const noexcept; // `local` is row / shards
  tail& tail_of(float* record) const noexcept { return *reinterpret_cast<tail*>(record + (1 + states_) * shape_.row); }
  float* make_record(); // allocates memory for one row: weights, state and tail
  void prefetch(row_numbers rows, std::size_t at) const noexcept; // of records_[at]
  // Sets records_ to the records of `rows`; make_missing() allocates and initialises those that are not held yet.
  void locate(row_numbers rows);
  void make_missing(row_numbers rows);
  // Constants of one update call; with Adam, same_for_all is replaced for every t.
  struct pass {
    double lr, factor;
    update_rule::coefficients same_for_all;
  };
  pass pass_of(std::uint64_t step, double factor) const noexcept;
  tail& note_update(float* record) const noexcept; // counts an update in the row's tail
  void update(const pass& p, float* record, const float* gradient);
  void update_waiting(std::uint64_t step, double factor); // updates all rows of waiting_

  const update_rule& rule_;
  shape shape_;
  init_function init_;
  std::uint64_t states_, record_bytes_, chunk_bytes_;
  std::vector<std::unique_ptr<page>> pages_; // by row / shards / page_rows; null: no row of this page is held
  std::vector<std::unique_ptr<void, aligned_free>> chunks_;
  std::uint64_t chunk_used_ = 0, held_ = 0;
  std::vector<std::int64_t> located_;  // rows of the current or last call
  std::vector<float*> records_;        // their records
  std::vector<const void*> addresses_; // for addresses()
  std::vector<std::uint64_t> missing_;
  std::vector<float> started_;
  std::vector<float*> waiting_;  // records whose gradient waits
  std::vector<float> gradients_; // gradients of waiting_
  bool committing_ = false;      // apply() was called, and the norm is not yet known
  norm norm_;
  std::vector<update_rule::bias_correction> corrections_; // by t - 1
};

} // namespace regatta
