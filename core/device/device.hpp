// SPDX-License-Identifier: Apache-2.0
//
// A device as its executor offers it (regatta/ext/device.h), and the engine's use of its streams. Stream `computing`
// executes the work of strategies and the optimizer in the order of enqueueing, so this work needs no fences. Copies
// from and to the host have streams of their own. Only fences order work of different streams: callers enqueue them
// with wait_for() and wait_for_stream(), and need not make the host wait.
#pragma once

#include "memory/processor.hpp"
#include "registry/plugin_host.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <regatta/ext/device.h>

namespace regatta {

// [any] except where noted: a lock serialises the calls, because an evaluation calls a device while the loop does;
// passed(), elapsed(), sensors() and waiting for the device do not take it. A call that fails throws failure by the
// status of the executor's function: RG_E_CONFIG usage, RG_E_UNSUPPORTED skipped, RG_E_PLUGIN plugin, others run, such
// as for a lack of memory. Errors of enqueued work appear in a later call. sensors() and freeing memory do not throw.
class device final : public processor {
public:
  // `watching` computes nothing: it waits for fences of other streams in order to notify the host. `streams` is the
  // number of streams.
  enum stream : std::uint32_t { computing, to_host, from_host, watching, streams };

  // [main] Opens device `index` (counted from 0) by the executor's `functions`, which are copied; the executor must
  // stay loaded. `name` begins the text of errors. `wake` is called on a thread of the executor when work for which
  // notify() was called has completed; it must not block or call the device. Throws failure: skipped if there is no
  // such device, plugin if a required function is missing, else by the status of open() as above.
  device(const rg_device& functions, std::string name, std::int32_t index, const plugin_host::log_function& log,
         std::function<void()> wake);
  // [main] Waits for all streams and frees all memory, also that of allocate() and allocate_shared(). No host_memory or
  // own_memory may exist any more.
  ~device() override;
  // [main] Prepares for destruction: when it returns, wake() is not running and is not called again. host_memory and
  // own_memory that their owners free from now on stay until the destructor, because streams may still access them.
  // Other calls stay allowed.
  void silence();

  // Returns the kind of the device, such as "cuda".
  const char* kind() const noexcept { return functions_.kind; }
  std::int32_t index() const noexcept { return index_; }

  // allocate() returns zeroed device memory, allocate_shared() zeroed pinned host memory that the device accesses; both
  // are aligned to at least 64 bytes and owned by the device until its destruction. run() and copy() enqueue work in
  // stream `computing`, whose memory must stay until the stream has executed it; run() always returns true, and ignores
  // an index outside of the target. The ranges of copy() must not overlap. export_memory() returns a new file
  // descriptor of memory from allocate(), which the caller closes, and the offset of `address` in it; fd = -1: there is
  // none.
  void* allocate(std::uint64_t bytes) override;
  void* allocate_shared(std::uint64_t bytes) override;
  bool run(const rg_work& work) override;
  void copy(void* to, const void* from, std::uint64_t bytes) override;
  rg::exported_memory export_memory(void* address, std::uint64_t bytes) override;
  // Enqueues c = alpha * op(a) * op(b) + beta * c, of at least one element, on stream `computing`; the three are
  // addresses of the device, and `what` is read during the call. Throws failure (plugin) if the device has none.
  void gemm(const rg_gemm& what, const void* a, const void* b, void* c);
  // Makes the device current for this thread and returns the handle of the stream, by which others enqueue work. Throws
  // failure (plugin) if the device gives none.
  void* handle(stream s);

  // Host memory that all streams can access (pinned), not zeroed; never null. The owner must free it only when no
  // stream accesses it any more (or after silence()), and before the device is destroyed. After
  // std::unique_ptr::release() it belongs to the device, whose destructor frees it.
  struct free_memory {
    device* of;
    void (*release)(void* self, void* address); // of rg_device
    void operator()(void* p) const noexcept;
  };
  using host_memory = std::unique_ptr<void, free_memory>;
  host_memory allocate_host(std::uint64_t bytes);
  // Device memory, zeroed before later work of any stream, aligned to at least 64 bytes; never null. The owner must
  // free it by the rules of host_memory above.
  using own_memory = std::unique_ptr<void, free_memory>;
  own_memory allocate_own(std::uint64_t bytes);

  // Enqueues `work` in a stream; RG_OP_COPY (between any two kinds of memory) too. The struct is read during the call;
  // the memory that it names must stay until the stream has executed it. Work on no elements is dropped, so that
  // NORM and SELECT write no result.
  void run(stream s, const rg_work& work);
  // Makes later work of `s` wait for a fence of this device, a model or a transport; 0: does nothing.
  void wait_for(stream s, rg_fence fence);
  // Returns a fence, never 0, that passes once all work that was enqueued in `s` so far is done. It stays
  // valid for at least the next 256 fences of `s` (rg_fence).
  rg_fence record(stream s);
  // Makes later work of `s` wait for all work that was enqueued in `other` so far.
  void wait_for_stream(stream s, stream other) { wait_for(s, record(other)); }
  // Returns whether a fence of this device or of its executor's model has passed; does not block.
  bool passed(rg_fence fence);
  // Makes the device call wake() once for this call, when all work that was enqueued in `s` so far has completed. Call
  // record() before, so that the woken thread finds the fence passed.
  void notify(stream s);

  // mark() is record() with a time by the device's own clock; its fences are accepted wherever those of record() are,
  // and are valid until their stream has 4096 more. elapsed() returns the nanoseconds from one mark to another,
  // negative if `to` passed first; it also takes fences of a model's phases and of its loss
  // (rg_device_hooks.late_loss), and requires that both have passed. mark() and elapsed() require has_timing_marks().
  bool has_timing_marks() const noexcept { return functions_.mark && functions_.elapsed; }
  rg_fence mark(stream s);
  double elapsed(rg_fence from, rg_fence to);
  struct span {
    rg_fence from, to; // marks
  };

  // Returns the sensors' readings, NaN or "" for unknown ones; blocks for milliseconds. Returns std::nullopt if the
  // device has no sensors, or reading them fails.
  std::optional<rg_sensors> sensors();

  // synchronize(), read() and write() block until all work that was enqueued in stream `computing` is done: call them
  // outside of the timed region. Besides them, only the destructor and allocating and freeing memory may wait for the
  // device.
  void synchronize();
  // Copy `bytes` bytes between device memory and pageable host memory, after that work; complete when they return.
  void read(void* to, const void* from, std::uint64_t bytes);  // from the device
  void write(void* to, const void* from, std::uint64_t bytes); // to the device

private:
  [[noreturn]] void lacks(const char* what) const;
  void check_status(rg_status status, const char* what);
  template <class F, class... A> void call(F function, const char* what, A... arguments) {
    if (!function) lacks(what); // an optional one
    rg_status status;
    {
      const std::lock_guard lock(calls_);
      status = function(self_, arguments...);
    }
    check_status(status, what);
  }
  // Copies through pinned memory, in chunks of at most 4 MiB; `read`: from the device.
  void move(char* to, const char* from, std::uint64_t bytes, bool read);

  plugin_host host_;
  std::string name_;
  rg_device functions_;
  std::int32_t index_;
  std::mutex calls_, mutex_; // mutex_ guards wake_
  std::function<void()> wake_;
  std::atomic<bool> silent_ = false; // set by silence(), read under calls_
  void* self_ = nullptr;
};

} // namespace regatta
