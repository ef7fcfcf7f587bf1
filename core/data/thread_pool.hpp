// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace regatta {

// A thread pool for loops: the caller of each() and `threads` - 1 more threads, which sleep between calls. 0 is as 1.
class thread_pool {
public:
  // Throws failure (run), which names data.threads, if a thread cannot be started.
  explicit thread_pool(std::uint64_t threads);
  ~thread_pool();
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;

  // Calls f(k) once for each k = 0 .. n - 1, on any of the threads at the same time and in any order. Returns when all
  // calls have ended. If a call throws, no further ones start, and the first exception is rethrown here. One call at a
  // time, and none from f.
  void each(std::uint64_t n, const std::function<void(std::uint64_t)>& f);

private:
  void end(); // stops the other threads
  void help();
  void work();

  std::mutex mutex_;
  std::condition_variable changed_, idle_;
  const std::function<void(std::uint64_t)>* f_ = nullptr;
  std::uint64_t count_ = 0, round_ = 0; // guarded by mutex_; each() changes them only while no thread works
  std::atomic<std::uint64_t> next_{0};
  std::uint64_t working_ = 0;
  std::exception_ptr error_;
  bool quit_ = false;
  std::vector<std::thread> others_;
};

} // namespace regatta
