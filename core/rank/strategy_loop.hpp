// SPDX-License-Identifier: Apache-2.0
//
// Decides which thread runs a worker's strategy: the compute thread while it waits, and a second thread while the
// compute thread computes. Waking a thread costs tens of microseconds, so the second thread sleeps until a bucket other
// than the last is complete, or release() finds that strategy_host::busy() (because of a co-located server, for
// example). A thread holds the strategy while it alone may call the strategy's [loop] functions.
#pragma once

#include "rank/session.hpp"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace regatta {

class strategy_loop {
public:
  // Starts the second thread. `s` is open and outlives this object. run_until() spins for the first rank_job::spin_ns
  // of each wait; the second thread never spins, because it shares a core with the computation. A failure of the second
  // thread, also because the case is aborted, is reported to the coordinator at once; the next acquire() or run_until()
  // throws it again.
  explicit strategy_loop(session& s);
  // [compute] Ends the second thread after its round and waits for it, whichever thread holds the strategy. A failure
  // that acquire() has not thrown is dropped.
  ~strategy_loop();

  // All [compute]. The compute thread holds the strategy at first.
  //
  // Returns once this thread holds the strategy: at once if it does already, else when the second thread ends its
  // round. Throws the exception that ended the second thread's rounds, once; this thread then holds the strategy too.
  void acquire();
  // Hands the strategy to the second thread if it is busy(). Call acquire() or run_until() before [loop] functions
  // again, also if it was not busy. Requires that this thread holds it.
  void release();
  // Calls strategy_host::gradients_ready(): elements [0, end) of the arena are ready once `fence` has passed. If the
  // call completes buckets of this step, but not the last one, hands the strategy to the second thread, or wakes that
  // thread if it holds the strategy. In each step, call release() before the first of these calls, and acquire() or
  // run_until() before [loop] functions; the last call of a step completes the last bucket.
  void gradients_ready(std::uint64_t end, rg_fence fence);
  // Calls acquire(), then runs rounds of the strategy until `done`, called on this thread before each round, returns
  // true. This thread then holds the strategy, also after an exception. Throws what acquire() throws, and failure if
  // the strategy, its transport or an operation fails, or the case is aborted.
  void run_until(const std::function<bool()>& done);
  // Returns the CPU time of the second thread since its start, in nanoseconds; 0 if it is not available.
  std::uint64_t thread_cpu_ns() const;

private:
  void hand_over();
  void thread();

  session& session_;
  strategy_host& strategy_;
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
