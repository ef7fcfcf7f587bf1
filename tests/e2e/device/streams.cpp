// SPDX-License-Identifier: Apache-2.0
#include "streams.hpp"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <string>

#include <fcntl.h>
#include <regatta/plugin.hpp>
#include <sys/mman.h>
#include <unistd.h>

namespace fake {

gpu& gpu::instance() {
  static gpu one;
  return one;
}

gpu::gpu() {
  file_ = memfd_create("fake device", MFD_CLOEXEC);
  void* const p = file_ < 0 || ftruncate(file_, room) != 0
                      ? MAP_FAILED
                      : mmap(nullptr, room, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file_, 0);
  if (p == MAP_FAILED) throw rg::error(RG_E_DEVICE, "the fake device has no room for its memory");
  memory_ = static_cast<std::byte*>(p);
  if (const char* how = std::getenv("REGATTA_FAKE_DEVICE"); how && std::string(how) != "late") {
    eager_ = true;
    draw_.seed(static_cast<std::uint32_t>(std::stoul(how)));
  }
  thread_ = std::thread([this] { thread(); });
}

gpu::~gpu() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  asked_.notify_all();
  thread_.join();
}

void* gpu::allocate(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::size_t size = (bytes + 255) / 256 * 256;
  if (size > room - taken_) throw rg::error(RG_E_OPERATION, "the fake device has no memory left");
  void* const p = memory_ + taken_;
  taken_ += size;
  return p;
}

rg::exported_memory gpu::export_memory(const void* address) const {
  const int fd = fcntl(file_, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) throw rg::error(RG_E_DEVICE, "the fake device cannot export its memory");
  return {fd, static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - memory_)};
}

void gpu::pinned(void* address, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  pinned_[static_cast<std::byte*>(address)] = bytes;
}

bool gpu::is_pinned(const void* address) {
  const std::lock_guard lock(mutex_);
  const auto* const at = static_cast<const std::byte*>(address);
  const auto next = pinned_.upper_bound(at);
  return next != pinned_.begin() && std::prev(next)->first + std::prev(next)->second > at;
}

std::size_t gpu::make_stream() {
  const std::lock_guard lock(mutex_);
  streams_.emplace_back();
  return streams_.size() - 1;
}

void gpu::add(std::size_t s, task f) {
  const std::lock_guard lock(mutex_);
  streams_[s].waiting.emplace_back(0, std::move(f));
  ++streams_[s].made;
  if (!eager_) return;
  const std::size_t any = draw_() % streams_.size();
  if (!streams_[any].waiting.empty()) wanted_.push_back({any, streams_[any].done + 1});
  asked_.notify_all();
}

void gpu::wait_for(std::size_t s, rg_fence fence) {
  const std::lock_guard lock(mutex_);
  of(fence);
  streams_[s].waiting.emplace_back(fence, task());
  ++streams_[s].made;
}

rg_fence gpu::record(std::size_t s) {
  const std::lock_guard lock(mutex_);
  return add_fence({s, streams_[s].made});
}

rg_fence gpu::add_fence(point p) {
  fences_.push_back(p);
  return (fences_.size() - 1) ^ mask;
}

rg_fence gpu::mark(std::size_t s) {
  const std::lock_guard lock(mutex_);
  const rg_fence fence = add_fence({s, streams_[s].made + 1});
  streams_[s].waiting.emplace_back(0, [this, fence] {
    const std::lock_guard inside(mutex_);
    marked_[fence] = clock_ns_;
  });
  ++streams_[s].made;
  return fence;
}

double gpu::elapsed(rg_fence from, rg_fence to) {
  const std::lock_guard lock(mutex_);
  const auto a = marked_.find(from), b = marked_.find(to);
  if (a == marked_.end() || b == marked_.end())
    throw rg::error(RG_E_PLUGIN, "the fake device was asked for the time of a fence that it has not passed or timed");
  return b->second - a->second;
}

gpu::point gpu::of(rg_fence fence) const {
  if ((fence ^ mask) >= fences_.size()) throw rg::error(RG_E_PLUGIN, "the fake device made no such fence");
  return fences_[fence ^ mask];
}

bool gpu::passed(rg_fence fence) {
  const std::lock_guard lock(mutex_);
  if (!error_.empty()) throw rg::error(RG_E_DEVICE, error_);
  const point p = of(fence);
  if (is_done(p)) return true;
  wanted_.push_back(p);
  asked_.notify_all();
  return false;
}

void gpu::wait(rg_fence fence) {
  std::unique_lock lock(mutex_);
  ++waits_;
  const point p = of(fence);
  wanted_.push_back(p);
  asked_.notify_all();
  done_.wait(lock, [&] { return is_done(p) || !error_.empty(); });
  if (!error_.empty()) throw rg::error(RG_E_DEVICE, error_);
}

void gpu::thread() {
  std::unique_lock lock(mutex_);
  for (;;) {
    asked_.wait(lock, [&] { return quit_ || !wanted_.empty(); });
    if (quit_) return;
    const point p = wanted_.front();
    wanted_.pop_front();
    run_to(p, lock);
  }
}

// Only this thread takes tasks out of streams.
void gpu::run_to(point p, std::unique_lock<std::mutex>& lock) {
  while (!is_done(p) && error_.empty()) {
    if (const rg_fence fence = streams_[p.stream].waiting.front().first) run_to(of(fence), lock);
    run_one(p.stream, lock);
  }
}

void gpu::run_one(std::size_t s, std::unique_lock<std::mutex>& lock) {
  const task f = std::move(streams_[s].waiting.front().second);
  streams_[s].waiting.pop_front();
  std::string error;
  if (f) {
    lock.unlock();
    protect(true);
    try {
      f();
    } catch (const std::exception& e) {
      error = e.what();
    }
    protect(false);
    lock.lock();
  }
  ++streams_[s].done;
  if (!error.empty()) error_ = error;
  done_.notify_all();
}

void gpu::protect(bool open) {
  mprotect(memory_, room, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

} // namespace fake
