// SPDX-License-Identifier: Apache-2.0
#include "rank/loop.hpp"

#include "base/failure.hpp"

#include <pthread.h>
#include <time.h>

namespace regatta {

loop::loop(exchange& x, control_client& control, state_report& report, std::function<void()> wake,
           std::function<bool()> aborted, std::uint64_t spin_ns, std::function<void(std::exception_ptr)> lost)
    : exchange_(x), control_(control), report_(report), wake_(std::move(wake)), aborted_(std::move(aborted)),
      lost_(std::move(lost)), spin_ns_(spin_ns), thread_([this] { thread(); }) {}

loop::~loop() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
    yield_ = true;
  }
  changed_.notify_all();
  wake_();
  thread_.join();
}

void loop::check_aborted() const {
  if (aborted_()) throw peer_failure("ended because another rank failed");
}

void loop::thread() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return runs_ || quit_; });
    if (quit_) return;
    lock.unlock();
    std::exception_ptr error;
    try {
      while (!yield_.load(std::memory_order_acquire)) {
        report_.poll(exchange_, 0);
        check_aborted();
      }
    } catch (...) {
      error = std::current_exception();
      if (lost_) lost_(error);
    }
    lock.lock();
    error_ = error;
    runs_ = false;
    changed_.notify_all();
  }
}

void loop::hand_over() {
  {
    const std::lock_guard lock(mutex_);
    runs_ = true;
  }
  handed_over_ = true;
  changed_.notify_all();
}

void loop::take() {
  if (!handed_over_) return;
  yield_.store(true, std::memory_order_release);
  wake_();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !runs_; });
  yield_.store(false, std::memory_order_relaxed);
  handed_over_ = false;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void loop::release() {
  full_ = 0;
  if (exchange_.busy()) hand_over();
}

void loop::gradients_ready(std::uint64_t end, rg_fence fence) {
  exchange_.gradients_ready(end, fence);
  const auto ends = exchange_.bucket_ends();
  const std::size_t before = full_;
  while (full_ < ends.size() && ends[full_] <= end) ++full_;
  // The last bucket ends the backward pass, and then this thread runs the exchange itself.
  if (full_ == before || full_ == ends.size()) return;
  if (handed_over_)
    wake_();
  else
    hand_over();
}

void loop::run_until(const std::function<bool()>& done) {
  take();
  const waiting_scope waits(control_.status(), waiting::peers);
  while (!done()) {
    report_.poll(exchange_, spin_ns_);
    check_aborted();
  }
}

std::uint64_t loop::thread_cpu_ns() const {
  clockid_t clock;
  timespec t{};
  if (pthread_getcpuclockid(const_cast<std::thread&>(thread_).native_handle(), &clock) != 0 ||
      clock_gettime(clock, &t) != 0)
    return 0;
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

} // namespace regatta
