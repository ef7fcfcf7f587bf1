// SPDX-License-Identifier: Apache-2.0
//
// Sums over all workers (ext/step_collectives.h) of a model that computes on the fake device's thread. The sums are the
// compute thread's work: the device's thread hands it the numbers, in host memory, and waits.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>

#include <regatta/ext/step_collectives.h>
#include <regatta/plugin.hpp>

namespace fake {

class late_sums {
public:
  explicit late_sums(const rg_host* outer) : outer_(outer), host_(rg::copy_versioned(*outer)) {
    host_.context = this;
    host_.log = [](void* self, std::int32_t level, const char* text) {
      of(self).outer_->log(of(self).outer_->context, level, text);
    };
    host_.fail = [](void* self, rg_status status, const char* text) {
      return of(self).outer_->fail(of(self).outer_->context, status, text);
    };
    host_.extension = [](void* self, const char* id) { return of(self).extension(id); };
  }
  late_sums(const late_sums&) = delete;
  late_sums& operator=(const late_sums&) = delete;

  // Returns the host of the model on the device's thread, valid as long as this object.
  const rg_host* host() const { return &host_; }
  // Returns whether the model has reserved sums.
  bool any() const { return reserved_; }

  // [compute] A step begins.
  void begin() {
    const std::lock_guard lock(mutex_);
    ended_ = false;
  }
  // [any] The device has done the step's work.
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  // [compute] Sums what the device's thread asks for, until end(). Throws rg::error if a sum failed.
  void serve() {
    rg_status failed = RG_OK;
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return numbers_ || ended_; });
      if (!numbers_) break;
      lock.unlock();
      const rg_status status = theirs_.all_reduce(theirs_.context, name_, numbers_, count_);
      lock.lock();
      if (status != RG_OK) failed = status;
      status_ = status;
      numbers_ = nullptr;
      changed_.notify_all();
    }
    if (failed != RG_OK) throw rg::error(failed, "a sum over all workers failed");
  }

private:
  static late_sums& of(void* self) { return *static_cast<late_sums*>(self); }
  const void* extension(const char* id) {
    const void* const found = outer_->extension(outer_->context, id);
    if (!found || std::strcmp(id, RG_EXT_STEP_COLLECTIVES) != 0) return found;
    theirs_ = rg::copy_versioned(*static_cast<const rg_step_collectives*>(found));
    mine_ = theirs_;
    mine_.context = this;
    mine_.reserve = [](void* self, std::uint64_t count) {
      of(self).reserved_ = true;
      of(self).theirs_.reserve(of(self).theirs_.context, count);
    };
    mine_.all_reduce = [](void* self, const char* name, double* numbers, std::uint64_t count) {
      return of(self).ask(name, numbers, count);
    };
    return &mine_;
  }
  // Called on the device's thread.
  rg_status ask(const char* name, double* numbers, std::uint64_t count) {
    std::unique_lock lock(mutex_);
    name_ = name;
    numbers_ = numbers;
    count_ = count;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !numbers_; });
    return status_;
  }

  const rg_host* outer_;
  rg_host host_;
  rg_step_collectives theirs_{}, mine_{};
  bool reserved_ = false;
  std::mutex mutex_; // guards the members below
  std::condition_variable changed_;
  const char* name_ = nullptr;
  double* numbers_ = nullptr; // null: the device asks for no sum
  std::uint64_t count_ = 0;
  rg_status status_ = RG_OK;
  bool ended_ = true;
};

} // namespace fake
