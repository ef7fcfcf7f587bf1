// SPDX-License-Identifier: Apache-2.0
//
// Records where a worker's step spends its time. The worker calls a function at the end of each phase; the clocks are
// read here. docs/measurement.md defines the figures.
//
// In a step the calls come in this order; those in brackets only for a model with sparse tables. Braces mean none or
// several, in any order:
//   begin_step, input_read, [rows_known, rows_arrived,]
//   for each micro-batch: micro_batch_begins, pass_begins, {forward | waited}, backward_reported, {waited},
//     backward_begins, {waited}, pass_ends, device_pass_ends if the loss is pending on a device,
//     (neither backward_reported nor backward_begins if the model reports no backward pass)
//   [next_input_read,] exchange_begins, update_begins, end_step.
#pragma once

#include "measure/rank_record.hpp"
#include "rank/timing/device_times.hpp"
#include "runtime/strategy_host.hpp"
#include "trace/recorder.hpp"

#include <cstdint>
#include <vector>

namespace regatta {

// All functions are [compute].
class step_times {
public:
  // All must outlive this object. `d` may be null: then only the host's clock is read. `trace` records the phases as
  // well; null: none.
  step_times(strategy_host& strategy, device* d, trace_recorder* trace)
      : strategy_(strategy), device_times_(d), trace_(trace) {}

  void begin_step();
  // The batch is in memory. The time until rows_known(), if it is called, counts as the forward pass.
  void input_read();
  // The rows of sparse tables that the step touches are known, and are requested now.
  void rows_known();
  void rows_arrived();
  // The time until pass_begins() counts as input.
  void micro_batch_begins();

  // The model's step() begins. Until backward_begins() everything counts as the forward pass, except waits;
  // without a call of backward_begins() all of the pass counts as the backward pass.
  void pass_begins();
  // The model reports a phase; `fence` is its mark on the device. 0: none, and the device does not time the pass. The
  // backward pass has two functions because the compute thread may wait for weights between the model's report and the
  // pass.
  void forward(rg_fence fence) { device_times_.forward(fence); }
  void backward_reported(rg_fence fence) { device_times_.backward(fence); }
  void backward_begins();
  // Within the model's step() the compute thread waited for other ranks until now; the wait began at `from`
  // (rg::steady_ns) and at `cpu` (rg::thread_cpu_ns).
  void waited(std::int64_t from, std::int64_t cpu);
  // The model's step() has returned.
  void pass_ends();
  // The device ends this pass at the fence of its loss.
  void device_pass_ends(rg_fence loss) { device_times_.pass_ends(loss); }

  // The host has read the next step's batch while the device computes.
  void next_input_read() { host_.read = device_times_.now(); }
  // Call exchange_begins() before the thread acquires the strategy for the exchange, and update_begins() when it holds
  // it: end_step() counts the worker's updates from there on as the step's update.
  void exchange_begins();
  void update_begins() { updated_before_ = strategy_.worker_update_ns(); }
  // Returns the times of step `n`, with the pause before it.
  step_time end_step(std::uint64_t n);

  // Adds the wait until now, for weights that arrive after the end of step `of`, to that step, which then ends now.
  static void weights_arrived(step_time& of);
  // Replaces the host's times, which only cover enqueueing, by those of the device, for the steps of `record` that it
  // has completed since the last call. `warmup` is the number of the first of record.steps. Does not wait.
  void collect_device_times(rank_record& record, std::uint64_t warmup);
  // Call it after collect_device_times() when the device has done all its work: the time until the next pass, such as
  // an evaluation, does not count as idle time of the device.
  void pause_device() { device_times_.pause(); }
  // The next step reports `ns` as the pause before it.
  void paused(std::int64_t ns) { paused_ = ns; }

  // Returns this thread's CPU time in the waits that waited() reported, and between exchange_begins() and end_step()
  // without updates, since forget_exchange_cpu().
  std::int64_t exchange_cpu_ns() const { return exchange_cpu_; }
  void forget_exchange_cpu() { exchange_cpu_ = 0; }

private:
  void trace_phase(const char* name, const char* category, std::int64_t begin, std::int64_t end) const;
  void trace_cpu(std::int64_t now) const;

  strategy_host& strategy_;
  device_times device_times_;
  trace_recorder* trace_;
  step_time step_;
  device_times::host_part host_;
  std::uint64_t updated_before_ = 0;     // strategy_host::worker_update_ns() when the wait or update began
  bool has_rows_ = false;                // the model has sparse tables
  std::int64_t phase_ = 0;               // begin of the current phase
  std::int64_t pass_ = 0, backward_ = 0; // begin of the model's step(), and of its backward pass
  bool has_backward_ = false;            // the model has reported its backward pass (RG_PHASE_BACKWARD)
  std::int64_t wait_ = 0, wait_at_ = 0;  // waits in this pass before backward_begins(), and the begin of the first
  std::int64_t backward_wait_ = 0;       // waits in this pass afterwards
  std::int64_t waits_ = 0;               // of all passes of the step
  std::int64_t paused_ = 0;
  std::int64_t cpu_ = 0, exchange_cpu_ = 0;
  std::vector<device::span> updates_; // of a step; its memory is reused
};

} // namespace regatta
