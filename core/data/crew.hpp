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

// A thread pool that shares a loop: the caller of each() and `threads` - 1 more threads, which sleep between calls.
class crew {
public:
  explicit crew(std::uint64_t threads);
  ~crew();
  crew(const crew&) = delete;
  crew& operator=(const crew&) = delete;

  // Calls f(k) for k = 0 .. n - 1, each once, on any of the threads. Throws the first exception of f.
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
