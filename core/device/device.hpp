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

// [any] except where noted: a lock serialises the calls. An evaluation calls it beside the loop.
class device final : public processor {
public:
  // `watching` computes nothing: it waits for other streams in order to notify the host
  enum stream : std::uint32_t { computing, to_host, from_host, watching, streams };

  // `name` begins errors. Any thread may call `wake` when work for which notify() was called has completed. Throws
  // failure (skipped if there is no such device).
  device(const rg_device& functions, std::string name, std::int32_t index, const plugin_host::log_function& log,
         std::function<void()> wake);
  ~device() override; // waits for all streams
  // [main] Prepares for destruction: wake() is not running any more and is not called again. Memory that is released
  // from now on is freed by the destructor, because streams may still access it.
  void silence();

  std::uint32_t memory() const noexcept { return functions_.memory; }

  // These implement processor on stream `computing`.
  void* allocate(std::uint64_t bytes) override;
  void* allocate_shared(std::uint64_t bytes) override;
  bool run(const rg_work& work) override;
  void copy(void* to, const void* from, std::uint64_t bytes) override;

  // Host memory that all streams can access (pinned). The owner must free it only when no stream accesses it any more.
  struct free_host {
    device* of;
    void operator()(void* p) const noexcept;
  };
  using host_memory = std::unique_ptr<void, free_host>;
  host_memory allocate_host(std::uint64_t bytes);
  // Device memory. The owner must free it only when no stream accesses it any more.
  struct free_own {
    device* of;
    void operator()(void* p) const noexcept;
  };
  using own_memory = std::unique_ptr<void, free_own>;
  own_memory allocate_own(std::uint64_t bytes);

  // Executes `work` on any stream; RG_OP_COPY too.
  void run(stream s, const rg_work& work);
  void hold(stream s, rg_fence fence); // makes later work of `s` wait for the fence; 0: no fence
  rg_fence record(stream s);
  // Makes later work of `s` wait for all work that was enqueued in `other` so far.
  void after(stream s, stream other) { hold(s, record(other)); }
  bool passed(rg_fence fence);
  // Calls wake() once all work that was enqueued in `s` so far has completed.
  void notify(stream s);

  // Timing marks by the device's own clock. mark() places one in a stream; elapsed() returns the nanoseconds between
  // two marks that have passed.
  bool tells_time() const noexcept { return functions_.mark && functions_.elapsed; }
  rg_fence mark(stream s);
  double elapsed(rg_fence from, rg_fence to);
  struct span {
    rg_fence from, to;
  };

  // Returns the sensors' values; takes milliseconds. Returns std::nullopt if the device has none, or they fail.
  std::optional<rg_sensors> sensors();

  // The only functions that wait for the device. [main], or outside of the timed region.
  void settle(); // for all work that was enqueued in stream `computing`
  void read(void* to, const void* from, std::uint64_t bytes);
  void write(void* to, const void* from, std::uint64_t bytes);

private:
  void ask(rg_status status, const char* what);
  template <class F, class... A> void call(F function, const char* what, A... arguments) {
    rg_status status;
    {
      const std::lock_guard lock(calls_);
      status = function(self_, arguments...);
    }
    ask(status, what);
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
