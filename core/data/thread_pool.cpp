// SPDX-License-Identifier: Apache-2.0
#include "data/thread_pool.hpp"

#include "base/failure.hpp"

#include <system_error>
#include <utility>

#include <fmt/core.h>

namespace regatta {

thread_pool::thread_pool(std::uint64_t threads) {
  try {
    for (std::uint64_t t = 1; t < threads; ++t) others_.emplace_back([this] { help(); });
  } catch (const std::system_error& e) {
    end();
    throw failure(exit_code::run, fmt::format("data.threads = {}: cannot start a thread: {}", threads, e.what()));
  }
}

thread_pool::~thread_pool() {
  end();
}

void thread_pool::end() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  for (std::thread& t : others_) t.join();
}

void thread_pool::each(std::uint64_t n, const std::function<void(std::uint64_t)>& f) {
  if (others_.empty()) {
    for (std::uint64_t k = 0; k < n; ++k) f(k);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    f_ = &f;
    count_ = n;
    next_ = 0;
    ++round_;
    working_ = others_.size();
  }
  changed_.notify_all();
  work();
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return working_ == 0; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void thread_pool::help() {
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return quit_ || round_ != seen; });
    if (quit_) return;
    seen = round_;
    lock.unlock();
    work();
    lock.lock();
    if (--working_ == 0) idle_.notify_one();
  }
}

void thread_pool::work() {
  try {
    for (std::uint64_t k; (k = next_.fetch_add(1)) < count_;) (*f_)(k);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
    next_ = count_; // stops the other threads too
  }
}

} // namespace regatta
