// SPDX-License-Identifier: Apache-2.0
//
// The operations of a strategy that take part on this rank alone: arithmetic, selections, matrix products, functions of
// the strategy's own, and timers. They are computed where their buffers are. The host computes at once; what takes long
// it computes on a thread of its own. A device computes after all work enqueued before, without the host waiting. Under
// a virtual clock an operation takes the time that one core would need, with ghosts too.
#pragma once

#include "device/device.hpp"
#include "device/host.hpp"
#include "memory/regions.hpp"
#include "registry/plugin_host.hpp"
#include "runtime/device_operations.hpp"
#include "runtime/function_thread.hpp"
#include "runtime/gradient_buckets.hpp"
#include "runtime/operation_timers.hpp"
#include "runtime/refusal.hpp"
#include "runtime/transport_instance.hpp"
#include "runtime/virtual_work.hpp"
#include "trace/recorder.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <vector>

#include <regatta/abi.h>

namespace regatta {

// Returns an operation as this engine knows it, with zeros for the members that the strategy's version of the interface
// does not have.
template <class Op> Op typed(const rg_op& op) {
  Op copy{};
  std::memcpy(static_cast<void*>(&copy), &op, std::min<std::size_t>(op.struct_size, sizeof copy));
  return copy;
}

// All functions are [loop], unless they say otherwise.
class local_operations {
public:
  // Borrows all; nothing is used before the first operation. `d`: the device with the arena; null: there is none.
  local_operations(const transport_instance& transport, const virtual_work& work, region_table& regions,
                   const rg_arena& arena, gradient_buckets& buckets, plugin_host& host, trace_recorder* trace,
                   device* d);

  // Return the processors of host memory, and of the memory of the arena: the device if there is one.
  host_processor& host() { return host_processor_; }
  processor& of_arena() { return device_ ? static_cast<processor&>(*device_) : host_processor_; }

  // [any] Returns the time: the transport's if that is virtual, else that of the monotonic clock. In ns.
  std::uint64_t now() const;
  // Executes an operation of this file. Returns RG_DONE if it has ended, RG_OK if take_ended() will return its
  // completion. Throws failure (plugin) if it is wrong, or of another kind.
  rg_status execute(const rg_op& op);

  struct operand {
    const char* name; // for messages: "the target"
    const rg_buffer& buffer;
    std::uint32_t type = any_type;
  };
  static constexpr std::uint32_t any_type = 0;
  // Checks an operation's buffers, and makes the device's next work wait for the operation's fence and for the gradients
  // that these buffers hold. Throws failure (plugin) if one is wrong.
  void accept(const rg_op& op, std::initializer_list<operand> operands);
  // Completes work on `bytes` of memory: at once, or under a virtual clock after the time that the work takes.
  rg_status complete_work(const rg_op& op, std::uint64_t bytes);
  // Adds an operation that ends with the work that the device has now, which writes `result`: device_operations::add().
  void complete_on_device(const rg_op_commit& o, device::host_memory result) {
    device_operations_.add(o, std::move(result));
  }
  device::host_memory pinned_pair() { return device_operations_.pinned_pair(); }

  // Appends the completions of the operations that have ended. Calls committed(op, total) for a COMMIT that the device
  // has completed. Returns the first error of a function of the strategy's own; RG_OK: there is none.
  using commit_function = std::function<void(const rg_op_commit& o, const double* total)>;
  rg_status take_ended(std::vector<rg_completion>& out, const commit_function& committed);
  // Returns when the next one ends that ends at a known time; UINT64_MAX: there is none.
  std::uint64_t next_timer() const { return timers_.next(); }
  // Returns the time until which work_end() has work, under a virtual clock with virtual_work::in_turn.
  std::uint64_t works_until() const { return work_end_; }
  bool empty() const { return timers_.empty() && device_operations_.empty() && functions_.empty(); }
  bool has_functions() const { return !functions_.empty(); }
  // [main] Waits for the function that runs, and drops the others. No operation may follow.
  void stop_functions() { functions_.stop(); }

private:
  bool is_virtual() const { return (transport_.caps.flags & RG_CAP_VIRTUAL) != 0; }
  processor& processor_of(const rg_buffer& b); // the processor that computes on this buffer
  void wait_for_gradients(const rg_buffer& b); // later work of the device waits for those in the buffer
  // As accept(); also set the index of the work.
  void accept_index(const rg_op& op, const rg_buffer& target, const rg_buffer& index, rg_work& w);
  void accept_selection(const rg_op& op, const rg_buffer& source, const rg_buffer& values, const rg_buffer& index,
                        rg_work& w);
  // Computes `w` where `at` is, whose address is its target; `bytes` as of complete_work(). Requires: `w` holds
  // everything but kind and target.
  rg_status compute(const rg_op& op, const rg_buffer& at, rg_work& w, std::uint64_t bytes);
  rg_status fill(const rg_op_fill& o);
  rg_status copy(const rg_op_copy& o);
  rg_status axpy(const rg_op_axpy& o);
  rg_status scale(const rg_op& op, const rg_buffer& target, double a); // SCALE, CLIP
  rg_status accumulate(const rg_op_accumulate& o);
  rg_status convert(const rg_op_convert& o);
  rg_status top_k(const rg_op_top_k& o);
  rg_status select(const rg_op_select& o);
  rg_status run(const rg_op_run& o);
  rg_status gemm(const rg_op_gemm& o);
  // Calls f() on the thread of functions_, or under a virtual clock after the time that work on `cost` bytes takes.
  rg_status compute_apart(const rg_op& op, std::uint64_t cost, std::function<rg_status()> f);
  // Begins work on `bytes` of memory under a virtual clock. Returns when it ends.
  std::uint64_t work_end(const rg_op& op, std::uint64_t bytes);

  const transport_instance& transport_;
  const virtual_work& work_;
  region_table& regions_;
  const rg_arena& arena_;
  gradient_buckets& buckets_;
  plugin_host& plugin_host_; // of the strategy
  trace_recorder* trace_;
  host_processor host_processor_;
  device* device_;
  operation_timers timers_;
  device_operations device_operations_;
  function_thread functions_;
  std::uint64_t functions_end_ = 0, work_end_ = 0; // when the last function, operation ends, under a virtual clock
};

// Returns work on `count` fp32 elements, without its kind and target.
rg_work work_on(std::uint64_t count);

} // namespace regatta
