// SPDX-License-Identifier: Apache-2.0
#include "rank/strategy_loop.hpp"

#include "rank/rank.hpp"

#include <nlohmann/json.hpp>
#include <pthread.h>
#include <regatta/clock.hpp>

namespace regatta {

strategy_loop::strategy_loop(session& s) : session_(s), strategy_(s.strategy()), thread_([this] { thread(); }) {}

strategy_loop::~strategy_loop() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
    yield_ = true;
  }
  changed_.notify_all();
  session_.wake();
  thread_.join();
}

void strategy_loop::thread() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return runs_ || quit_; });
    if (quit_) return;
    lock.unlock();
    std::exception_ptr error;
    try {
      while (!yield_.load(std::memory_order_acquire)) session_.poll(0);
    } catch (...) {
      error = std::current_exception();
      // Report at once: the compute thread may be waiting for ranks that wait for this one.
      report_to_coordinator(session_.control, [&]() -> nlohmann::json { std::rethrow_exception(error); });
    }
    lock.lock();
    error_ = error;
    runs_ = false;
    changed_.notify_all();
  }
}

void strategy_loop::hand_over() {
  {
    const std::lock_guard lock(mutex_);
    runs_ = true;
  }
  handed_over_ = true;
  changed_.notify_all();
}

void strategy_loop::acquire() {
  if (!handed_over_) return;
  yield_.store(true, std::memory_order_release);
  session_.wake();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !runs_; });
  yield_.store(false, std::memory_order_relaxed);
  handed_over_ = false;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void strategy_loop::release() {
  if (strategy_.busy()) hand_over();
}

void strategy_loop::gradients_ready(std::uint64_t end, rg_fence fence) {
  strategy_.gradients_ready(end, fence);
  const auto ends = strategy_.bucket_ends();
  const std::size_t before = complete_buckets_;
  while (complete_buckets_ < ends.size() && ends[complete_buckets_] <= end) ++complete_buckets_;
  // The last bucket ends the backward pass, and then this thread runs the strategy itself.
  if (complete_buckets_ == ends.size()) complete_buckets_ = 0; // for the next step
  if (complete_buckets_ <= before) return;
  if (handed_over_)
    session_.wake();
  else
    hand_over();
}

void strategy_loop::run_until(const std::function<bool()>& done) {
  acquire();
  const waiting_scope waits(session_.control.status(), waiting::peers);
  while (!done()) session_.poll(session_.job.spin_ns);
}

std::uint64_t strategy_loop::thread_cpu_ns() const {
  clockid_t clock;
  if (pthread_getcpuclockid(const_cast<std::thread&>(thread_).native_handle(), &clock) != 0) return 0;
  return static_cast<std::uint64_t>(rg::read_clock_ns(clock));
}

} // namespace regatta
