// SPDX-License-Identifier: Apache-2.0
//
// A worker that computes more slowly than its machine would let it (cluster.slow): it sleeps a multiple of the time that
// it computed. Sleeping, since a slow machine takes nothing from the others.
#pragma once

#include "rank/clock.hpp"

#include <cerrno>
#include <cstdint>

#include <time.h>

namespace regatta {

class straggler {
public:
  // 1: not slow.
  explicit straggler(double factor) : more_(factor - 1) {}

  // [compute] The passes begin, or go on after something that is no computing.
  void resume() noexcept {
    if (more_ > 0) since_ = steady_ns();
  }
  // [compute] Catches up with what was computed since; in pieces that a sleep can keep to, but for the last.
  void compute(bool last) noexcept {
    if (!(more_ > 0)) return;
    owed_ += static_cast<std::int64_t>(more_ * static_cast<double>(steady_ns() - since_));
    constexpr std::int64_t shortest = 500'000;
    if (owed_ >= shortest || (last && owed_ > 0)) {
      const std::int64_t until = steady_ns() + owed_;
      const timespec t{until / 1'000'000'000, until % 1'000'000'000};
      while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) {
      }
      owed_ = 0;
    }
    since_ = steady_ns();
  }

private:
  double more_;
  std::int64_t since_ = 0, owed_ = 0;
};

} // namespace regatta
