// SPDX-License-Identifier: Apache-2.0
//
// A page of memory that a rank shares with its coordinator. The rank writes its state. The coordinator reads it, even
// while the rank hangs or is stopped, and after it has died, up to the rank's last store.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/descriptor.hpp"

namespace regatta {

// Classes of operations, by how long one may show no sign of progress before the rank counts as stalled; stall_limits
// (launch/stall_detector.hpp) has the times.
enum class pace : std::uint32_t {
  step,   // a part of every step; the limit grows with the mean time of a step
  rare,   // comes once or now and then, such as set-up, evaluation or drain; the limit is some minutes
  unseen, // may run for minutes without a sign of progress, such as autotuning or opening a data set; longest limit
};

// For what a thread of the rank waits.
enum class waiting : std::uint32_t {
  nothing,
  coordinator, // for the answer to a call on the control channel, such as a barrier
  peers,       // for messages of other ranks, while it polls the strategy
};

// One reading of the page. The fields are read one after the other, not atomically together.
struct rank_status {
  std::uint64_t step = 0, samples = 0; // completed so far
  std::uint64_t work = 0;              // number of signs of progress so far
  waiting waits = waiting::nothing;    // peers if any thread waits for peers; else coordinator if any waits for it
  std::uint64_t rounds = 0;            // begun polls of the strategy; constant while a plugin's function hangs in one
  std::string operation;               // the last one that began; empty: none yet
  regatta::pace pace = regatta::pace::rare;
};

// operation() to end_wait() are [any], lock-free and async-signal-safe; so is read(), except that it allocates. Rank
// and coordinator each have their own mapping, which ends with their object.
class status_page {
public:
  // Creates a new page of zeros. Throws failure (run) if the system refuses it.
  status_page();
  // Maps the page of another process's status_page and closes `descriptor`. Throws failure: usage if `descriptor` is no
  // status page, run if it cannot be mapped; the descriptor then stays open.
  explicit status_page(int descriptor);

  // Returns the descriptor of a page that this object created, for a child process; it is close-on-exec, which the
  // child must clear. -1 if the page was mapped from a descriptor, or after close_descriptor(). The size is sealed, so
  // that no process can shrink the memory under the coordinator.
  int descriptor() const noexcept { return descriptor_.get(); }
  void close_descriptor() noexcept { descriptor_.reset(); } // the mapping remains

  // The rank's side. operation() says what the rank begins, and copies at most 59 bytes of `what`. progress() sets the
  // totals of completed steps and samples. Both count as a sign of progress.
  void operation(const char* what, pace p) noexcept;
  void progress(std::uint64_t step, std::uint64_t samples) noexcept;
  void worked() noexcept; // counts one more sign of progress
  void round() noexcept;  // counts a poll of the strategy that begins
  // The calling thread waits for `what` between begin_wait() and end_wait(what). Several threads may wait at once.
  void begin_wait(waiting what) noexcept;
  void end_wait(waiting what) noexcept;

  // The coordinator's side. Returns the state of the rank now.
  rank_status read() const;

private:
  struct layout;
  struct unmap {
    void operator()(layout* page) const noexcept;
  };
  void map(int descriptor);

  unique_fd descriptor_;
  std::unique_ptr<layout, unmap> page_;
};

// [any] Marks the calling thread as waiting for `what` during the lifetime of this object. `page` must outlive it.
class waiting_scope {
public:
  waiting_scope(status_page& page, waiting what) : page_(page), what_(what) { page_.begin_wait(what_); }
  ~waiting_scope() { page_.end_wait(what_); }
  waiting_scope(const waiting_scope&) = delete;
  waiting_scope& operator=(const waiting_scope&) = delete;

private:
  status_page& page_;
  waiting what_;
};

} // namespace regatta
