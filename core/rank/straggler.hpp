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

// The clock by which straggler measures and sleeps.
struct thread_clock {
  static std::int64_t now() noexcept { return rg::steady_ns(); }
  static void sleep(std::int64_t ns) { std::this_thread::sleep_for(std::chrono::nanoseconds(ns)); }
};

template <class Clock> class basic_straggler {
public:
  // A factor of 1 or less changes nothing.
  explicit basic_straggler(double factor) : more_(factor - 1) {}

  // [compute] Computing begins, or continues after a time that does not count as computing.
  void resume() noexcept {
    if (more_ > 0) since_ = Clock::now();
  }
  // [compute] Sleeps for (factor - 1) times the time since the last call of resume() or compute(). A sleep below 0.5 ms
  // is added to the next one; with `last`, at the end of a forward or backward pass, it is not put off. The kernel ends
  // sleeps late, by more than a short one takes: what a sleep took too long is taken off the next ones.
  void compute(bool last) noexcept {
    if (!(more_ > 0)) return;
    const std::int64_t now = Clock::now();
    owed_ += static_cast<std::int64_t>(more_ * static_cast<double>(now - since_));
    since_ = now;
    constexpr std::int64_t shortest = 500'000;
    if (owed_ < shortest && !(last && owed_ > 0)) return;
    Clock::sleep(owed_);
    since_ = Clock::now();
    owed_ -= since_ - now;
  }

private:
  double more_;
  std::int64_t since_ = 0, owed_ = 0; // owed_: time still to sleep; below 0 after a sleep that took too long
};
using straggler = basic_straggler<thread_clock>;

} // namespace regatta
