// SPDX-License-Identifier: Apache-2.0
//
// The fake GPU of a process. Only its own thread can touch its memory; any other access ends the process. Streams run
// as late as possible: a task runs when somebody asks for a fence behind it, and with it only the tasks that its stream
// was told to wait for. So work that lacks a fence sees memory from long before or long after. The values of fences
// have no order. Environment:
//
//   REGATTA_FAKE_DEVICE=late    as above (the default)
//   REGATTA_FAKE_DEVICE=SEED    every new task also runs a task of a stream that is drawn from this seed
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

#include <regatta/device.hpp>

namespace fake {

class gpu {
public:
  using task = std::function<void()>;
  static gpu& instance();

  // [any] for all functions of this class but spend(). Returns zeroed device memory, which is never reused.
  void* allocate(std::uint64_t bytes);
  // Returns a new file descriptor of the whole device memory, and the place of `address` in it.
  rg::exported_memory export_memory(const void* address) const;
  // Registers pinned host memory.
  void pinned(void* address, std::uint64_t bytes);
  bool is_pinned(const void* address);
  std::size_t make_stream();
  // Enqueues `f`, which runs on the device's thread. An exception of `f` is thrown by every later passed() and wait().
  void add(std::size_t stream, task f);
  // Makes later work of the stream wait for the fence.
  void wait_for(std::size_t stream, rg_fence fence);
  rg_fence record(std::size_t stream);
  // Called by tasks, on the device's thread. Advances the device's clock, which does not advance otherwise.
  void spend(double ns) { clock_ns_ += ns; }
  rg_fence mark(std::size_t stream);
  double elapsed(rg_fence from, rg_fence to);
  bool passed(rg_fence fence); // if not, starts the work before it
  void wait(rg_fence fence);
  // Returns how often wait() was called.
  std::uint64_t waits() const { return waits_; }

private:
  gpu();
  ~gpu();
  struct point {
    std::size_t stream;
    std::uint64_t position; // number of tasks of the stream before it
  };
  struct stream {
    std::deque<std::pair<rg_fence, task>> waiting; // a fence to wait for, or a task
    std::uint64_t done = 0, made = 0;
  };
  void thread();
  // Require the lock, which is released while a task runs.
  void run_to(point p, std::unique_lock<std::mutex>& lock);
  void run_one(std::size_t stream, std::unique_lock<std::mutex>& lock);
  rg_fence add_fence(point p);
  point of(rg_fence fence) const;
  bool is_done(point p) const { return streams_[p.stream].done >= p.position; }
  void protect(bool open);

  static constexpr std::size_t room = std::size_t{1} << 30; // bytes of address space
  static constexpr rg_fence mask = 0xb5ad4eceda1ce2a9;
  int file_; // the memory
  std::byte* memory_;
  std::size_t taken_ = 0;

  std::mutex mutex_;
  std::condition_variable asked_, done_;
  std::map<const std::byte*, std::uint64_t> pinned_; // length by address
  std::vector<stream> streams_;
  std::vector<point> fences_; // by fence ^ mask
  std::deque<point> wanted_;
  std::string error_;
  bool eager_ = false, quit_ = false;
  std::mt19937 draw_;
  std::uint64_t waits_ = 0;
  double clock_ns_ = 0;                         // of the device's thread
  std::unordered_map<rg_fence, double> marked_; // when they passed; guarded by mutex_
  std::thread thread_;
};

} // namespace fake
