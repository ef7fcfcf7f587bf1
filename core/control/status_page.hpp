// SPDX-License-Identifier: Apache-2.0
//
// One page of memory that a rank shares with its coordinator. The rank writes where it stands, the coordinator reads it:
// also while the rank hangs or is stopped, and after it has died, exact to the rank's last store.
#pragma once

#include <cstdint>
#include <string>

namespace regatta {

// How long an operation may show no progress (standstill_limits in launch/launch.hpp has the figures).
enum class pace : std::uint32_t {
  step,   // comes in every step
  rare,   // comes once, or now and then: set-up, evaluation, drain
  unseen, // may take minutes of which the engine sees nothing: kernel timing, opening a data set
};

// Reasons for which a rank waits.
enum class waiting : std::uint32_t { nothing, coordinator, peers };

// One reading of the page. The fields are read one after the other, not at one instant.
struct rank_status {
  std::uint64_t step = 0, samples = 0; // done
  std::uint64_t work = 0;              // moves with everything that the rank achieves
  waiting waits = waiting::nothing;    // peers: its main thread runs the exchange
  std::uint64_t rounds = 0;            // of the exchange: stands still while the code of a plugin does not return
  std::string operation;               // empty: none yet
  regatta::pace pace = regatta::pace::rare;
};

// Every function that writes is lock-free, async-signal-safe and for any thread [any]; so is read(), but for its
// allocation. Rank and coordinator each have a mapping of their own, which ends with their object.
class status_page {
public:
  // A new page, zero. Throws failure (run).
  status_page();
  // The page behind a descriptor of another status_page, which is closed. Throws failure (usage) where it is none.
  explicit status_page(int descriptor);
  ~status_page();
  status_page(status_page&& other) noexcept;
  status_page& operator=(status_page&& other) noexcept;

  // Names the page for a child that inherits it. The page's own; -1 where it was made of a descriptor, or after
  // close_descriptor(). Its size is sealed, so nobody can take memory away from under the coordinator.
  int descriptor() const noexcept { return descriptor_; }
  void close_descriptor() noexcept; // the mapping stays

  // The rank's side. `what` is copied, 59 bytes at most.
  void operation(const char* what, pace p) noexcept;
  void progress(std::uint64_t step, std::uint64_t samples) noexcept;
  void worked() noexcept;
  void round() noexcept;
  // Between the two the calling thread waits. Threads may overlap.
  void begin_wait(waiting what) noexcept;
  void end_wait(waiting what) noexcept;

  // The coordinator's side.
  rank_status read() const;

private:
  struct layout;
  void map(int descriptor);

  int descriptor_ = -1;
  layout* page_ = nullptr;
};

// The calling thread waits for `what` for as long as this lives. [any]
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
