// SPDX-License-Identifier: Apache-2.0
//
// Finds ranks without progress, and decides whether the run cannot go on. A rank makes progress when `work` in its
// status page changes. A rank that waits for others may make none as long as any of them does.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "control/status_page.hpp"

namespace regatta {

// The longest time without progress. These limits apply to connected ranks.
struct standstill_limits {
  const char* setting = "measure.timeout";       // the key or option that sets these limits, for messages
  bool watched = false;                          // false: no limit, as under a debugger
  std::optional<std::chrono::milliseconds> same; // takes the place of all limits below
  std::chrono::milliseconds step{30'000};        // within a step; or usual_steps times its usual time if that is longer
  int usual_steps = 20;
  std::chrono::milliseconds rare{120'000};   // before the end of the first step, and for pace::rare
  std::chrono::milliseconds unseen{600'000}; // for pace::unseen
};

class standstill {
public:
  using clock = std::chrono::steady_clock;

  standstill(const standstill_limits& limits, std::size_t ranks) : limits_(limits), ranks_(ranks) {}

  // Records the status of a rank at `now`. The first call starts the watch; leave() ends it, once the rank has given
  // its result or is gone.
  void note(std::uint32_t rank, const rank_status& status, clock::time_point now);
  void leave(std::uint32_t rank);
  // Does not count `time`, in which this process could not check.
  void forgive(clock::duration time);

  // Returns the ranks because of which the run cannot go on, the blamed ones first; empty while it can. Blamed is a
  // rank that is above its limit and does not wait for others, or whose exchange does not return. If there is none, but
  // every rank is above its limit, returns all: ranks that wait in an exchange before ranks that wait for the
  // coordinator, the lowest step first.
  std::vector<std::uint32_t> stuck(clock::time_point now) const;

  // Returns the time since the last progress of a rank. Requires an earlier note() of it.
  clock::duration still_for(std::uint32_t rank, clock::time_point now) const { return now - ranks_[rank].moved; }

private:
  struct entry {
    bool watched = false;
    rank_status status;
    clock::time_point moved, turned;                  // when `work` and `rounds` last changed
    std::optional<clock::time_point> first_step_done; // when the coordinator saw it
    clock::time_point last_step_done;
    std::uint64_t first_step = 0;
  };
  clock::duration limit_of(const entry& e) const;
  bool waits(const entry& e, clock::time_point now) const;
  clock::duration usual_step() const;

  standstill_limits limits_;
  std::vector<entry> ranks_;
};

} // namespace regatta
