// SPDX-License-Identifier: Apache-2.0
//
// Decides which thread runs a worker's strategy: the compute thread while it waits, and a second thread while the
// compute thread computes. Waking a thread costs tens of microseconds, so the second thread sleeps until a bucket other
// than the last is complete, or an operation is pending that needs it (of a co-located server, for example).
#pragma once

#include "rank/state_report.hpp"
#include "runtime/strategy_host.hpp"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace regatta {

class strategy_loop {
public:
  // Starts the second thread. The arguments must outlive this object. `wake` ends strategy_host::poll() from any
  // thread. `aborted` is called whenever poll returns; if it returns true, the case has ended and peer_failure is
  // thrown. Spins for `spin_ns` while the compute thread waits; the second thread never spins, because it shares a core
  // with the computation. `on_failure` is called on the second thread as soon as that thread fails; acquire() throws
  // the failure later.
  strategy_loop(strategy_host& strategy, control_client& control, state_report& report, std::function<void()> wake,
                std::function<bool()> aborted, std::uint64_t spin_ns,
                std::function<void(std::exception_ptr)> on_failure = {});
  ~strategy_loop(); // ends the second thread and waits for it

  // All [compute]. The compute thread holds the strategy at first. Only while it does may it call [loop] functions.
  //
  // Returns once this thread holds the strategy. Throws a failure of the second thread; this thread then holds it too.
  void acquire();
  // Hands the strategy to the second thread if it is busy(). Either way, call acquire() before [loop] functions again.
  // Requires that this thread holds it.
  void release();
  // Calls strategy_host::gradients_ready(). Hands the strategy to the second thread if a bucket other than the last is
  // now complete. In each step, call release() before the first of these calls.
  void gradients_ready(std::uint64_t end, rg_fence fence);
  // Takes the strategy and runs it until `done`, called on this thread before each round, returns true. This thread
  // then holds the strategy. Throws failure, also if the case is aborted.
  void run_until(const std::function<bool()>& done);
  std::uint64_t thread_cpu_ns() const; // CPU time of the second thread since its start; 0: not available

private:
  void hand_over();
  void thread();
  void check_aborted() const;

  strategy_host& strategy_;
  control_client& control_;
  state_report& report_;
  std::function<void()> wake_;
  std::function<bool()> aborted_;
  std::function<void(std::exception_ptr)> on_failure_;
  std::uint64_t spin_ns_;
  bool handed_over_ = false;         // [compute]
  std::size_t complete_buckets_ = 0; // [compute] complete buckets of this step
  std::mutex mutex_;
  std::condition_variable changed_;
  bool runs_ = false, quit_ = false; // under mutex_
  std::atomic<bool> yield_{false};
  std::exception_ptr error_; // under mutex_
  std::thread thread_;
};

} // namespace regatta
