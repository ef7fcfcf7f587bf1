// SPDX-License-Identifier: Apache-2.0
//
// Slows a worker down by a factor (cluster.straggler): after computing, it sleeps for (factor - 1) times the computing
// time. It sleeps instead of spinning, because a slow machine does not take processor time from other ranks.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

#include <regatta/clock.hpp>

namespace regatta {

class straggler {
public:
  // A factor of 1 or less changes nothing.
  explicit straggler(double factor) : more_(factor - 1) {}

  // [compute] Computing begins, or continues after a time that does not count as computing.
  void resume() noexcept {
    if (more_ > 0) since_ = rg::steady_ns();
  }
  // [compute] Sleeps for (factor - 1) times the time since the last call of resume() or compute(). A sleep below 0.5 ms
  // is added to the next one, because the kernel cannot keep to it; with `last`, at the end of a forward or backward
  // pass, it is not put off.
  void compute(bool last) noexcept {
    if (!(more_ > 0)) return;
    owed_ += static_cast<std::int64_t>(more_ * static_cast<double>(rg::steady_ns() - since_));
    constexpr std::int64_t shortest = 500'000;
    if (owed_ >= shortest || (last && owed_ > 0)) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(owed_));
      owed_ = 0;
    }
    since_ = rg::steady_ns();
  }

private:
  double more_;
  std::int64_t since_ = 0, owed_ = 0;
};

} // namespace regatta
