// SPDX-License-Identifier: Apache-2.0
//
// What a worker's steps train on: micro-batches out of the data source, and, for a model that counts (tokens, masked
// words), what the global batch of the step counts. Where workers are synchronous the counts are those of all workers,
// summed over the control channel; to let no step wait for that, the next step's batch is read, counted and its sum
// begun before this step computes. Where they are not, a worker takes its own counts times the number of workers, but in
// step 0: there all begin alike, and the loss must be that of any other strategy on the same samples.
//
// A device reads its batches out of pinned memory when it gets there, two passes after the host at most: the memory of a
// pass is written again by the third after it.
#pragma once

#include "rank/batch_memory.hpp"
#include "rank/session.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace regatta {

class batches {
public:
  // A rank that is no worker takes part in the sum of this step, if there is one.
  static void attend(session& s, std::uint64_t step);

  explicit batches(session& s);

  // Steps are 0 .. end - 1: no step is read ahead past it. Not known until the warm-up is over.
  void end_at(std::uint64_t end) { end_ = end; }
  // Whether begin(step) may wait for other ranks.
  bool meets(std::uint64_t step) const { return summed_ || (counted_ && step == 0); }
  // [compute] Reads the step, as far as it is not read yet; its counts are known when this returns.
  void begin(std::uint64_t step);
  // [compute] Reads the step after the one that was begun, if there is one, while a device computes that.
  void read_ahead();
  // [compute] Micro-batch m of the step that was begun; valid until the next call of either, or, where the model counts
  // or has sparse tables, until the next step: then all of them are in memory at once.
  rg_batch micro(std::uint64_t m);
  // [compute] No sum is under way any more: what must be before other meetings on the control channel.
  void settle();
  // Of the step that was begun, this worker's; empty where nothing is counted.
  const std::vector<std::uint64_t>& mine() const { return current().mine; }
  // Tokens, without padding, in the micro-batches of the step taken so far; nothing where batches are not counted in them.
  std::optional<std::uint64_t> tokens() const { return token_places_ ? std::optional(tokens_) : std::nullopt; }

private:
  struct slot {
    std::vector<batch_memory> micros; // all of a step, or those that are used in turn
    std::vector<std::uint64_t> mine, global;
    bool filled = false;
    bool ahead = false; // holds the batch of a step that was not begun yet, counted
  };

  slot& of(std::uint64_t step) { return slots_[step % slots_.size()]; }
  const slot& current() const { return slots_[step_ % slots_.size()]; }
  batch_memory& memory(std::uint64_t step, std::uint64_t m);
  void read(std::uint64_t step, std::uint64_t m, batch_memory& into);
  void read_all(std::uint64_t step);
  void prepare(std::uint64_t step);
  void count(std::uint64_t step, slot& of);
  void count_tokens(const rg_batch& b);

  session& session_;
  const std::uint64_t micros_, samples_, first_; // micro-batches a step, samples of each, place of the first
  const bool counted_, summed_, whole_;          // summed: in every step; whole: all of a step's micro-batches are kept
  const bool constant_;                          // every pass has the same samples
  std::vector<rg_made> made_;                    // by input, how the device makes it; empty: it makes none
  std::vector<slot> slots_;                      // used in turn by steps
  std::uint64_t step_ = 0;                       // the one that was begun
  std::size_t tokens_input_ = 0;
  std::uint64_t token_places_ = 0; // of a micro-batch; 0: tokens are not counted
  std::uint64_t tokens_ = 0;       // of the step, so far
  std::uint64_t end_ = UINT64_MAX;
  slot* summing_ = nullptr;
};

} // namespace regatta
