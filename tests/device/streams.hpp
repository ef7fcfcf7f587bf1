// SPDX-License-Identifier: Apache-2.0
//
// The fake GPU of a process: memory that only its own thread can touch (any other access ends the process), and streams
// that run as late as can be: a task runs when somebody asks for a fence behind it, and with it no more than what it was
// told to wait for. So what lacks a fence meets memory as it was long before, or as it has become since. Environment:
//
//   REGATTA_FAKE_DEVICE=late    as said (the default)
//   REGATTA_FAKE_DEVICE=SEED    every new task lets some stream go on, drawn from this number: others overtake it
//   REGATTA_FAKE_DEVICE_LOG     a file to which each instance appends a line when it is closed
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

#include <regatta/abi.h>

namespace fake {

class gpu {
public:
  using task = std::function<void()>;
  static gpu& instance();

  // Zeroed memory of the device, never used again. [any], like all that follows.
  void* allocate(std::uint64_t bytes);
  // Of the host, from where copies need not be waited for.
  void pinned(void* address, std::uint64_t bytes);
  bool is_pinned(const void* address);
  std::size_t make_stream();
  // Runs `f` on the device's thread, in the stream's order. What it throws is what asking for a fence throws from then on.
  void add(std::size_t stream, task f);
  // What follows in the stream waits for the fence.
  void hold(std::size_t stream, rg_fence fence);
  rg_fence record(std::size_t stream);
  // The device has a clock of its own, which goes on by what tasks spend, and by nothing else. [a task]
  void spend(double ns) { clock_ns_ += ns; }
  rg_fence mark(std::size_t stream);
  double elapsed(rg_fence from, rg_fence to);
  bool passed(rg_fence fence); // and what it needs is going to run
  void wait(rg_fence fence);
  // Whether a fence was ever made.
  std::uint64_t waits() const { return waits_; }

private:
  gpu();
  ~gpu();
  struct point {
    std::size_t stream;
    std::uint64_t position; // tasks of the stream before it
  };
  struct stream {
    std::deque<std::pair<rg_fence, task>> waiting; // a fence to wait for, or a task
    std::uint64_t done = 0, made = 0;
  };
  void thread();
  // With the lock held, which is given up while a task runs.
  void run_to(point p, std::unique_lock<std::mutex>& lock);
  void run_one(std::size_t stream, std::unique_lock<std::mutex>& lock);
  point of(rg_fence fence) const;
  bool is_done(point p) const { return streams_[p.stream].done >= p.position; }
  void protect(bool open);

  static constexpr std::size_t room = std::size_t{1} << 30; // of addresses
  std::byte* memory_;
  std::size_t taken_ = 0;

  std::mutex mutex_;
  std::condition_variable asked_, done_;
  std::map<const std::byte*, std::uint64_t> pinned_; // bytes from there on
  std::vector<stream> streams_;
  std::vector<point> fences_; // fence k is fences_[k - 1]
  std::deque<point> wanted_;
  std::string error_;
  bool eager_ = false, quit_ = false;
  std::mt19937 draw_;
  std::uint64_t waits_ = 0;
  double clock_ns_ = 0;                         // the device's thread's
  std::unordered_map<rg_fence, double> marked_; // when they were passed; under mutex_
  std::thread thread_;
};

} // namespace fake
