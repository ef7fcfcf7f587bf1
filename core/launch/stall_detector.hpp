// SPDX-License-Identifier: Apache-2.0
//
// Finds ranks without progress, and decides whether the run can go on. A rank makes progress when `work` in its status
// page changes. A rank that waits for others may stand still as long as any rank makes progress.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "control/status_page.hpp"

namespace regatta {

// The longest time that a rank may make no progress, by the `pace` of its operation (control/status_page.hpp).
struct stall_limits {
  const char* setting = "measure.timeout";       // the key or option that sets these limits, for messages
  bool watched = false;                          // false: no limit, as under a debugger
  std::optional<std::chrono::milliseconds> same; // takes the place of all limits below
  // For pace::step: the longer of `step` and usual_steps times the mean time of a step on the slowest rank.
  std::chrono::milliseconds step{30'000};
  int usual_steps = 20;
  std::chrono::milliseconds rare{120'000};   // for pace::rare; for pace::step too until any rank has ended a step
  std::chrono::milliseconds unseen{600'000}; // for pace::unseen
};

// Not thread-safe.
class stall_detector {
public:
  using clock = std::chrono::steady_clock;

  stall_detector(const stall_limits& limits, std::size_t ranks) : limits_(limits), ranks_(ranks) {}

  // note() records the status of a rank at `now`; the first call for a rank starts its watch. leave() ends the watch:
  // call it once the rank has given its result or is gone.
  void note(std::uint32_t rank, const rank_status& status, clock::time_point now);
  void leave(std::uint32_t rank) { ranks_[rank].watched = false; }
  // Takes `time`, in which this process could not check, off the time without progress of all ranks.
  void forgive(clock::duration time);

  // Returns the ranks because of which the run cannot go on; empty while it can, or if limits.watched is false. These
  // are the ranks above their limit that wait for nobody, or wait for peers while a plugin's function in their exchange
  // has not returned for as long. If there is none, but every watched rank is above its limit, returns all of them:
  // those that wait in an exchange before those that wait for the coordinator, each by ascending step.
  std::vector<std::uint32_t> stuck(clock::time_point now) const;

  // Returns the time since the last progress of a rank. Requires an earlier note() of it.
  clock::duration still_for(std::uint32_t rank, clock::time_point now) const { return now - ranks_[rank].moved; }

private:
  struct entry {
    bool watched = false;
    rank_status status;
    clock::time_point moved, turned;                  // when status.work and status.rounds last changed
    std::optional<clock::time_point> first_step_done; // when the coordinator saw it
    clock::time_point last_step_done;
    std::uint64_t first_step = 0;
  };
  clock::duration limit_of(const entry& e) const;
  bool waits(const entry& e, clock::time_point now) const;
  clock::duration usual_step() const;

  stall_limits limits_;
  std::vector<entry> ranks_;
};

} // namespace regatta
