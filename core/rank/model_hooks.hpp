// SPDX-License-Identifier: Apache-2.0
//
// Runs a worker's model on micro-batches, and implements the hooks (rg_hooks) that the model calls meanwhile: need()
// waits for weights, ready() passes gradients to the strategy, phase() reports what the model computes next. Serves the
// model's sums over workers (session::sum_over_workers), and slows a straggler down.
#pragma once

#include "rank/hook_rules.hpp"
#include "rank/pending_losses.hpp"
#include "rank/session.hpp"
#include "rank/straggler.hpp"
#include "rank/strategy_loop.hpp"
#include "rank/timing/step_times.hpp"

#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include <regatta/abi.h>

namespace regatta {

class model_hooks {
public:
  // The arguments must outlive this object.
  model_hooks(session& s, strategy_loop& loop, step_times& times);
  model_hooks(const model_hooks&) = delete;
  model_hooks& operator=(const model_hooks&) = delete;

  // [compute] Calls the model's step(). `last`: the micro-batch is the last of step `n`, so its gradients are those of
  // the step. Throws failure, also (plugin) if the model breaks the rules of the hooks, such as a call of ready()
  // without `last`. A broken rule is already reported to the coordinator when run() throws, unless the model has
  // left out a call of ready().
  step_loss run(const rg_batch& batch, std::uint64_t n, bool last);

private:
  static model_hooks& of(void* self) { return *static_cast<model_hooks*>(self); }
  void map_tensors(const rg_arena& arena); // sets first_ and ready_end_
  void find_bucket_ends();                 // sets awaited_
  // The hooks of the model, on the host and on a device. None throws: no exception may pass through the model.
  rg_status need(std::uint32_t tensor) noexcept;
  void ready(std::uint32_t tensor, rg_fence fence);
  void phase(std::uint32_t phase, rg_fence fence);
  // Wait until the weights from element `first` on have arrived, or for a sum; `name` is that of the wait in a trace,
  // or of the sum. Return RG_E_CANCELLED after a failure, which failure_ keeps.
  rg_status wait_for_weights(std::uint64_t first, const char* name) noexcept;
  rg_status sum_over_workers(const char* name, std::span<double> numbers) noexcept;
  // Calls f(), which waits for other ranks and must leave the strategy held by this thread (strategy_loop); then
  // releases the strategy. The time does not count as computing of a straggler. Returns as wait_for_weights().
  template <class F> rg_status wait(const char* name, const F& f) noexcept;
  void trace_hook(const std::vector<const char*>& names, std::uint32_t tensor) noexcept;
  // Returns whether a call of the model kept the rules (`broken` is null). If not, keeps the failure, and reports it.
  bool keeps(const std::exception_ptr& broken) noexcept;

  session& session_;
  strategy_loop& loop_;
  step_times& times_;
  straggler straggler_;
  hook_rules rules_;
  const char* pass_ = nullptr; // name of the current pass, for the status page (control/status_page.hpp)
  rg_hooks hooks_{};
  rg_device_hooks device_hooks_{};
  step_loss loss_;                   // of the current micro-batch
  std::vector<std::uint64_t> first_; // by tensor: its first weight in the arena
  // by tensor: end of the arena that is final once the tensor's gradient is ready
  std::vector<std::uint64_t> ready_end_;
  std::vector<std::uint32_t> awaited_; // the tensors that end a bucket
  // by tensor, for the trace: names of calls of need() and ready(); empty without a trace
  std::vector<const char*> need_names_, ready_names_;
  std::exception_ptr failure_; // thrown when the model's step() has returned
};

} // namespace regatta
