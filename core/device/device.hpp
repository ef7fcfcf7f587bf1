// SPDX-License-Identifier: Apache-2.0
//
// A device as its executor offers it (regatta/device.h), and the engine's use of its streams. Stream 0 executes the
// work of strategies and the optimizer in the order of enqueueing. Copies from and to the host have separate streams,
// which fences order relative to stream 0. Callers therefore need not wait for the device or name fences to be correct.
#pragma once

#include "memory/processor.hpp"
#include "registry/plugin_host.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <regatta/device.h>

namespace regatta {

// [any] except where noted: a lock serialises the calls, because an evaluation calls a device while the loop does. Any
// call throws failure (by the status of the executor's function, check() in plugin_host.hpp) if it fails; errors of
// enqueued work appear in a later call.
class device final : public processor {
public:
  // `watching` computes nothing: it waits for other streams in order to notify the host; `streams` is their number
  enum stream : std::uint32_t { computing, to_host, from_host, watching, streams };

  // [main] Opens device `index` by the executor's `functions`, which are copied. `name` begins the text of errors.
  // `wake` is called on a thread of the executor when work for which notify() was called has completed; it must not
  // block or call the device. Throws failure: skipped if there is no such device, plugin if a function is missing.
  device(const rg_device& functions, std::string name, std::int32_t index, const plugin_host::log_function& log,
         std::function<void()> wake);
  ~device() override; // waits for all streams and frees all memory
  // [main] Prepares for destruction: when it returns, wake() is not running and is not called again. Memory that is
  // released from now on is freed by the destructor, because streams may still access it.
  void silence();

  // Returns the kind of the device's memory (RG_MEMORY_*).
  std::uint32_t memory() const noexcept { return functions_.memory; }

  // These implement processor on stream `computing`.
  void* allocate(std::uint64_t bytes) override;
  void* allocate_shared(std::uint64_t bytes) override;
  bool run(const rg_work& work) override;
  void copy(void* to, const void* from, std::uint64_t bytes) override;

  // Host memory that all streams can access (pinned), not zeroed. The owner must free it only when no stream accesses
  // it any more, and before the device is destroyed.
  struct free_host {
    device* of;
    void operator()(void* p) const noexcept;
  };
  using host_memory = std::unique_ptr<void, free_host>;
  host_memory allocate_host(std::uint64_t bytes);
  // Zeroed device memory. The owner must free it as host_memory.
  struct free_own {
    device* of;
    void operator()(void* p) const noexcept;
  };
  using own_memory = std::unique_ptr<void, free_own>;
  own_memory allocate_own(std::uint64_t bytes);

  // Enqueues `work` in a stream; RG_OP_COPY (between any two kinds of memory) too. Work on no elements is dropped.
  void run(stream s, const rg_work& work);
  void wait_for(stream s, rg_fence fence); // makes later work of `s` wait for the fence; 0: does nothing
  // Returns a fence that passes once all work that was enqueued in `s` so far is done.
  rg_fence record(stream s);
  // Makes later work of `s` wait for all work that was enqueued in `other` so far.
  void wait_for_stream(stream s, stream other) { wait_for(s, record(other)); }
  // Returns whether a fence of record() or mark() has passed; does not block.
  bool passed(rg_fence fence);
  // Makes the device call wake() once, when all work that was enqueued in `s` so far has completed.
  void notify(stream s);

  // Timing marks by the device's own clock. mark() places one in a stream, as record() does; elapsed() returns the
  // nanoseconds between two marks that have passed. A mark is valid until its stream has 4096 more. Both require
  // has_timing_marks().
  bool has_timing_marks() const noexcept { return functions_.mark && functions_.elapsed; }
  rg_fence mark(stream s);
  double elapsed(rg_fence from, rg_fence to);
  struct span {
    rg_fence from, to;
  };

  // Returns the sensors' readings; blocks for milliseconds. Returns std::nullopt if the device has none, or they fail.
  std::optional<rg_sensors> sensors();

  // These wait for all work that was enqueued in stream `computing`: call them outside of the timed region. Besides
  // them, only allocating and freeing memory may wait for the device.
  void synchronize();
  // Copy between device memory and pageable host memory, after that work; complete when they return.
  void read(void* to, const void* from, std::uint64_t bytes);  // from the device
  void write(void* to, const void* from, std::uint64_t bytes); // to the device

private:
  void check_status(rg_status status, const char* what);
  template <class F, class... A> void call(F function, const char* what, A... arguments) {
    rg_status status;
    {
      const std::lock_guard lock(calls_);
      status = function(self_, arguments...);
    }
    check_status(status, what);
  }
  // Copies through pinned memory, in chunks.
  void move(char* to, const char* from, std::uint64_t bytes, bool read);

  plugin_host host_;
  std::string name_;
  rg_device functions_;
  std::mutex calls_, mutex_; // mutex_ guards wake_
  std::function<void()> wake_;
  bool silent_ = false;
  void* self_ = nullptr;
};

} // namespace regatta
