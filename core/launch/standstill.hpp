// SPDX-License-Identifier: Apache-2.0
//
// Which ranks of a run stand still, and whether the run therefore cannot go on. A rank achieves something when its
// status page's `work` moves. A rank that waits for others may stand still for as long as any of them goes on.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "control/status_page.hpp"

namespace regatta {

// The longest time without progress of any kind. None of the figures is about ranks that have not connected.
struct standstill_limits {
  const char* setting = "measure.timeout";       // that sets all this, for people
  bool watched = false;                          // false: ranks may stand still for ever, as under a debugger
  std::optional<std::chrono::milliseconds> same; // instead of all below
  std::chrono::milliseconds step{30'000};        // within a step; or usual_steps times the usual one, if that is longer
  int usual_steps = 20;
  std::chrono::milliseconds rare{120'000};   // before the end of the first step, and for pace::rare
  std::chrono::milliseconds unseen{600'000}; // for pace::unseen
};

class standstill {
public:
  using clock = std::chrono::steady_clock;

  standstill(const standstill_limits& limits, std::size_t ranks) : limits_(limits), ranks_(ranks) {}

  // Where the rank is at `now`. From the first call on it is watched, until it leaves: its result is in, or it is gone.
  void note(std::uint32_t rank, const rank_status& status, clock::time_point now);
  void leave(std::uint32_t rank);
  // For `time` nobody could look.
  void forgive(clock::duration time);

  // The ranks for whose sake the run cannot go on, those to blame first; empty while it may. To blame is a rank that is
  // above its limit and does not wait for others, or whose exchange does not return; without one, where every rank is
  // above its limit, those in an exchange before those at the coordinator, the lowest step first.
  std::vector<std::uint32_t> stuck(clock::time_point now) const;

  // Since its last progress; for ranks that were noted.
  clock::duration still_for(std::uint32_t rank, clock::time_point now) const { return now - ranks_[rank].moved; }

private:
  struct entry {
    bool watched = false;
    rank_status status;
    clock::time_point moved, turned;                  // when work and rounds last changed
    std::optional<clock::time_point> first_step_done; // as seen here
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
