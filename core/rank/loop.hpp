// SPDX-License-Identifier: Apache-2.0
//
// Who runs the exchange of a worker: its compute thread while it has nothing else to do, a thread of ours while it
// computes. Waking a thread costs tens of microseconds, so ours sleeps until a bucket is full before the last one, or
// something is under way that needs it (a co-located server, say).
#pragma once

#include "rank/exchange.hpp"
#include "rank/state_report.hpp"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace regatta {

class loop {
public:
  // `wake` ends the exchange's poll from any thread; `aborted` is asked whenever poll returns. Spins for `spin_ns`
  // while the compute thread waits; the other thread never spins, for it shares a core with the computation.
  loop(exchange& x, control_client& control, state_report& report, std::function<void()> wake,
       std::function<bool()> aborted, std::uint64_t spin_ns,
       std::function<void(std::exception_ptr)> lost = {}); // [its own thread] what it met, at once
  ~loop();

  // All [compute]. The compute thread holds the exchange at first.
  void take();    // returns once it holds it; throws what the other thread met
  void release(); // it turns to something else: hand over if anything is under way
  void gradients_ready(std::uint64_t end, rg_fence fence); // elements [0, end) are final, on a device behind it
  // Holds the exchange and runs it until `done`. Throws failure, also when the case is aborted.
  void run_until(const std::function<bool()>& done);
  std::uint64_t thread_cpu_ns() const; // of the other thread

private:
  void hand_over();
  void thread();
  void check_aborted() const;

  exchange& exchange_;
  control_client& control_;
  state_report& report_;
  std::function<void()> wake_;
  std::function<bool()> aborted_;
  std::function<void(std::exception_ptr)> lost_;
  std::uint64_t spin_ns_;
  bool handed_over_ = false; // [compute]
  std::size_t full_ = 0;     // [compute] buckets full in this step
  std::mutex mutex_;
  std::condition_variable changed_;
  bool runs_ = false, quit_ = false; // under mutex_
  std::atomic<bool> yield_{false};
  std::exception_ptr error_; // under mutex_
  std::thread thread_;
};

} // namespace regatta
