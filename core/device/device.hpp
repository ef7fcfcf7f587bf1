// SPDX-License-Identifier: Apache-2.0
//
// A device as its executor offers it (regatta/device.h), and what the engine makes of its streams: stream 0 computes what
// strategies and the optimiser ask for, one after the other in the order of asking; copies from and to the host have
// streams of their own, ordered with it by fences. So nobody above waits for the device, or names a fence, to be right.
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

// [any] but for what says otherwise: a lock makes the calls one at a time. An evaluation's are beside the loop's.
class device final : public processor {
public:
  // `watching` computes nothing: it waits for what others do, to tell the host.
  enum stream : std::uint32_t { computing, to_host, from_host, watching, streams };

  // `name` is what errors begin with. `wake` is called by any thread when something that notify() was asked for is done.
  // Throws failure (skipped where there is no such device).
  device(const rg_device& functions, std::string name, std::int32_t index, const plugin_host::log_function& log,
         std::function<void()> wake);
  ~device() override; // waits for all streams
  // The end is near: no wake() is under way, and none comes any more; what is given back is freed by the destructor, for
  // streams may still touch it. [main]
  void silence();

  std::uint32_t memory() const noexcept { return functions_.memory; }

  // The processor: on stream `computing`.
  void* allocate(std::uint64_t bytes) override;
  void* allocate_shared(std::uint64_t bytes) override;
  bool run(const rg_work& work) override;
  void copy(void* to, const void* from, std::uint64_t bytes) override;

  // Memory of the host that all streams reach. Freed with what holds it, when no stream touches it any more.
  struct free_host {
    device* of;
    void operator()(void* p) const noexcept;
  };
  using host_memory = std::unique_ptr<void, free_host>;
  host_memory allocate_host(std::uint64_t bytes);
  // The device's, likewise.
  struct free_own {
    device* of;
    void operator()(void* p) const noexcept;
  };
  using own_memory = std::unique_ptr<void, free_own>;
  own_memory allocate_own(std::uint64_t bytes);

  // On any stream; RG_OP_COPY too.
  void run(stream s, const rg_work& work);
  void hold(stream s, rg_fence fence); // 0: nothing
  rg_fence record(stream s);
  // What `s` is given from now on comes after all that `other` was given so far.
  void after(stream s, stream other) { hold(s, record(other)); }
  bool passed(rg_fence fence);
  // wake() is called once all that `s` was given so far is done.
  void notify(stream s);

  // Times by its own clock: points in a stream, and nanoseconds from one that has passed to another.
  bool tells_time() const noexcept { return functions_.mark && functions_.elapsed; }
  rg_fence mark(stream s);
  double elapsed(rg_fence from, rg_fence to);
  struct span {
    rg_fence from, to;
  };

  // What its sensors say now, in milliseconds; nothing where it has none, or they fail.
  std::optional<rg_sensors> sensors();

  // The only ones that wait. [main], or outside of what is timed.
  void settle(); // for all that was asked of stream `computing`
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
  // By way of pinned memory, piece by piece.
  void move(char* to, const char* from, std::uint64_t bytes, bool read);

  plugin_host host_;
  std::string name_;
  rg_device functions_;
  std::mutex calls_, mutex_; // mutex_: of wake_
  std::function<void()> wake_;
  bool silent_ = false;
  void* self_ = nullptr;
};

} // namespace regatta
