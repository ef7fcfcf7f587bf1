// SPDX-License-Identifier: Apache-2.0
//
// Calls functions of a strategy off the loop (RG_OP_RUN, RG_OP_GEMM): one at a time, in order, on a thread that starts
// with the first one.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <regatta/abi.h>

namespace regatta {

class function_thread {
public:
  using function = std::function<rg_status()>; // does not throw
  // `wake` is called on the thread when take_ended() has something to return; it must neither block nor call this
  // object.
  explicit function_thread(std::function<void()> wake) : wake_(std::move(wake)) {}
  ~function_thread() { stop(); }
  // [main] Waits for the function that runs, and drops those that have not begun. Only the destructor and stop()
  // follow.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      quit_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

  // [loop] Calls f() on the thread, after all earlier ones.
  void add(std::uint64_t cookie, function f) {
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    ++pending_;
    {
      const std::lock_guard lock(mutex_);
      waiting_.emplace_back(cookie, std::move(f));
    }
    changed_.notify_one();
  }
  // [loop] Appends the completions of the functions that have ended, in order, with the status that they returned.
  // Returns the first error among them; RG_OK: there is none.
  rg_status take_ended(std::vector<rg_completion>& out) {
    const std::lock_guard lock(mutex_);
    rg_status first = RG_OK;
    for (const rg_completion& c : ended_) {
      if (first >= 0) first = c.status;
      out.push_back(c);
    }
    pending_ -= ended_.size();
    ended_.clear();
    return first;
  }
  // [loop] Returns whether every function's completion has been taken.
  bool empty() const noexcept { return !pending_; }

private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return quit_ || !waiting_.empty(); });
      if (quit_) return;
      const auto [cookie, f] = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      rg_completion c{};
      c.cookie = cookie;
      c.status = f();
      lock.lock();
      ended_.push_back(c);
      wake_();
    }
  }

  std::size_t pending_ = 0; // [loop] first, beside the members of others that each poll of the rank reads
  std::function<void()> wake_;
  std::mutex mutex_; // guards the members below it
  std::condition_variable changed_;
  std::deque<std::pair<std::uint64_t, function>> waiting_;
  std::vector<rg_completion> ended_;
  bool quit_ = false;
  std::thread thread_;
};

} // namespace regatta
