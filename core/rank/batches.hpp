// SPDX-License-Identifier: Apache-2.0
//
// Supplies a worker's steps with micro-batches from the data source. For a model that counts (tokens, masked words) it
// also determines the counts of the step's global batch. With a synchronous strategy, these are summed over all workers
// on the control channel. So that no step waits for the sum, the next step's batch is read and counted, and its sum
// begun, before the current step computes. With other strategies each worker multiplies its own counts by the number of
// workers, except in step 0: there all workers sum their counts, so that the first loss equals that of any other
// strategy on the same samples.
//
// A pass is the computation of one micro-batch. A device reads a batch from pinned memory up to two passes after the
// host wrote it. The memory of a pass is therefore written again only by the third pass after it.
#pragma once

#include "rank/batch_memory.hpp"
#include "rank/session.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace regatta {

class batches {
public:
  // [main] Takes part in the workers' sum of counts of this step, if there is one. A rank that is no worker calls it
  // for every step, in order. Throws failure (run) if the case ends.
  static void attend(session& s, std::uint64_t step);

  // [main] Workers only. `s` is open and outlives this object. Throws failure (plugin) if the model counts but has no
  // count(); and as batch_memory and data_source::plan() do.
  explicit batches(session& s);

  // Sets the number of steps: `end` and later steps are not read ahead. Call it after the warm-up, when it is known.
  void end_at(std::uint64_t end) { end_ = end; }
  // Returns whether begin(step) may wait for other workers, because the counts of `step` are summed.
  bool sums_counts(std::uint64_t step) const { return summed_ || (counted_ && step == 0); }
  // [compute] Begins `step`: 0, 1, ... in order. Reads its batch unless it was read ahead; if micro() reads as
  // it goes, only the first micro-batch. Its counts are known when this returns. Throws failure, also (run) if the case
  // ends while it waits.
  void begin(std::uint64_t step);
  // [compute] Reads the batch of the step after the current one, if there is one, while a device computes. Requires a
  // device and a model with sparse tables: otherwise it may overwrite the current batch. Where counts are summed in
  // every step, begin() has read ahead already, and this does nothing. Throws failure as begin() does.
  void read_ahead();
  // [compute] Returns micro-batch `m` of the step that was begun, reading it if necessary: call it with ascending m. It
  // is valid until the next call of begin() or micro(); where the model counts or has sparse tables, all micro-batches
  // are in memory at once and valid until the next step, and may be asked for again. Throws failure as begin() does.
  rg_batch micro(std::uint64_t m);
  // [compute] Completes a pending sum of counts. Call it before any other collective call on the control channel.
  // Throws failure (run) if the case ends while it waits.
  void finish_sum();
  // This worker's counts for the step that was begun, by kind of count; empty if the model counts nothing.
  const std::vector<std::uint64_t>& mine() const { return current().mine; }
  // Returns the tokens, without padding, of all micro-batches that micro() has returned in this step, each once;
  // std::nullopt unless train.batch_unit is "tokens" and the model has an input of tokens.
  std::optional<std::uint64_t> tokens() const { return token_positions_ ? std::optional(tokens_) : std::nullopt; }

private:
  struct slot {
    std::vector<batch_memory> micros; // all of a step, or a few that are reused in rotation
    std::vector<std::uint64_t> mine, global;
    bool filled = false; // a batch has been read into `micros`
    bool ahead = false;  // holds the batch, read and counted, of a step that was not begun yet
  };

  slot& of(std::uint64_t step) { return slots_[step % slots_.size()]; }
  const slot& current() const { return slots_[step_ % slots_.size()]; }
  batch_memory& memory(std::uint64_t step, std::uint64_t m); // of micro-batch m
  void read(std::uint64_t step, std::uint64_t m, batch_memory& into);
  void read_all(std::uint64_t step); // the first micro-batch only, unless whole_
  void prepare(std::uint64_t step);  // reads and counts the step's batch, unless that was done ahead
  // Sets the step's own counts, and begins their sum over the workers, or multiplies them by the number of workers.
  void count(std::uint64_t step, slot& of);
  void count_tokens(const rg_batch& b);

  session& session_;
  // Micro-batches of a step, samples of each, and the index of this worker's first sample in the step's global batch.
  const std::uint64_t micros_, samples_, first_;
  const bool counted_, summed_, whole_; // summed: in every step; whole: keeps all micro-batches of a step
  const bool constant_;                 // every pass has the same samples
  std::vector<slot> slots_;             // used in rotation by steps
  std::uint64_t step_ = 0;              // the step that was begun
  std::size_t tokens_input_ = 0;
  std::uint64_t token_positions_ = 0; // per micro-batch; 0: tokens are not counted
  std::uint64_t tokens_ = 0;          // of the step's first micros_counted_ micro-batches
  std::uint64_t micros_counted_ = 0;
  std::uint64_t end_ = UINT64_MAX;
  slot* summing_ = nullptr;
};

} // namespace regatta
