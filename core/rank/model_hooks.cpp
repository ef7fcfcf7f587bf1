// SPDX-License-Identifier: Apache-2.0
#include "rank/model_hooks.hpp"

#include "rank/rank.hpp"

#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>
#include <regatta/clock.hpp>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

double slowness(const session& s) {
  const straggler_config& slow = s.job.config.cluster.straggler;
  return slow.rank == s.cluster.worker ? slow.factor : 1;
}

std::int64_t last_dense(const rg_arena& a) {
  return a.slice_count ? std::int64_t{a.slices[a.slice_count - 1].tensor} : -1;
}

} // namespace

model_hooks::model_hooks(session& s, strategy_loop& loop, step_times& times)
    : session_(s), loop_(loop), times_(times), straggler_(slowness(s)),
      rules_("model " + s.job.config.model.id, s.model().tensors(), last_dense(s.strategy().arena())) {
  map_tensors(s.strategy().arena());
  find_bucket_ends();
  hooks_ = rg::make_versioned<rg_hooks>();
  hooks_.context = this;
  hooks_.need = [](void* self, std::uint32_t tensor) { return of(self).need(tensor); };
  hooks_.ready = [](void* self, std::uint32_t tensor) { of(self).ready(tensor, 0); };
  hooks_.backward = [](void* self) { of(self).phase(RG_PHASE_BACKWARD, 0); };
  if (s.device()) hooks_.device = &device_hooks_;
  device_hooks_ = rg::make_versioned<rg_device_hooks>();
  device_hooks_.context = this;
  device_hooks_.awaited = awaited_.data();
  device_hooks_.awaited_count = static_cast<std::uint32_t>(awaited_.size());
  device_hooks_.need = [](void* self, std::uint32_t tensor, rg_fence* after) {
    const rg_status status = of(self).need(tensor);
    *after = of(self).session_.strategy().weights_after();
    return status;
  };
  device_hooks_.ready = [](void* self, std::uint32_t tensor, rg_fence fence) { of(self).ready(tensor, fence); };
  device_hooks_.phase = [](void* self, std::uint32_t phase, rg_fence fence) { of(self).phase(phase, fence); };
  device_hooks_.late_loss = [](void* self, const double* at, rg_fence fence) { of(self).loss_ = {0, 0, at, fence}; };
  if (trace_recorder* const t = s.trace())
    for (const rg_tensor& w : s.model().tensors()) {
      need_names_.push_back(t->text(std::string("need ") + w.name));
      ready_names_.push_back(t->text(std::string("ready ") + w.name));
    }
  s.sum_over_workers = [this](const char* name, std::span<double> numbers) { return sum_over_workers(name, numbers); };
}

void model_hooks::map_tensors(const rg_arena& arena) {
  ready_end_.resize(session_.model().tensors().size(), 0);
  first_.resize(ready_end_.size(), UINT64_MAX);
  for (std::uint32_t i = 0; i < arena.slice_count; ++i) {
    const rg_slice& s = arena.slices[i];
    first_[s.tensor] = s.first;
    ready_end_[s.tensor] = s.first + s.count;
  }
  // A tensor that is not dense is ready when the dense tensors before it are.
  for (std::size_t i = 1; i < ready_end_.size(); ++i) ready_end_[i] = std::max(ready_end_[i], ready_end_[i - 1]);
}

void model_hooks::find_bucket_ends() {
  for (const std::uint64_t end : session_.strategy().bucket_ends())
    awaited_.push_back(static_cast<std::uint32_t>(std::ranges::lower_bound(ready_end_, end) - ready_end_.begin()));
  awaited_.erase(std::unique(awaited_.begin(), awaited_.end()), awaited_.end());
}

step_loss model_hooks::run(const rg_batch& batch, std::uint64_t n, bool last) {
  model_instance& model = session_.model();
  times_.pass_begins();
  rules_.begin(n, last);
  pass_ = "forward pass";
  straggler_.resume();
  loss_ = {};
  auto result = rg::make_versioned<rg_step_result>();
  const rg_status status = model.functions().step(model.self(), &batch, &hooks_, &result);
  if (failure_) std::rethrow_exception(failure_);
  model.check_status(status, "step");
  if (last) rules_.require_all_ready();
  straggler_.compute(true);
  times_.pass_ends();
  return {result.loss_sum, result.count, loss_.late, loss_.fence};
}

rg_status model_hooks::need(std::uint32_t tensor) noexcept {
  if (failure_ || !keeps(rules_.need(tensor))) return RG_E_CANCELLED;
  trace_hook(need_names_, tensor);
  return wait_for_weights(first_[tensor], need_names_.empty() ? "" : need_names_[tensor]);
}

void model_hooks::trace_hook(const std::vector<const char*>& names, std::uint32_t tensor) noexcept {
  if (trace_recorder* const t = session_.trace(); t && t->on())
    t->instant(event_origin::compute, names[tensor], "hook", rg::now_ns());
}

void model_hooks::ready(std::uint32_t tensor, rg_fence fence) {
  session_.control.status().worked();
  if (!keeps(rules_.ready(tensor))) return;
  trace_hook(ready_names_, tensor);
  straggler_.compute(false);
  loop_.gradients_ready(ready_end_[tensor], fence);
}

void model_hooks::phase(std::uint32_t phase, rg_fence fence) {
  if (phase == RG_PHASE_FORWARD) return times_.forward(fence);
  times_.backward_reported(fence);
  straggler_.compute(true);
  wait_for_weights(
      0, "all weights"); // weights always arrive before the gradients that were computed with them are exchanged
  times_.backward_begins();
  session_.control.operation(pass_ = "backward pass");
}

// A failure is thrown when the model's step() has returned. `name` is that of the wait in a trace.
template <class F> rg_status model_hooks::wait(const char* name, const F& f) noexcept {
  straggler_.compute(false);
  const std::int64_t from = rg::steady_ns(), cpu = rg::thread_cpu_ns();
  try {
    f();
    loop_.release();
  } catch (...) {
    failure_ = std::current_exception();
    return RG_E_CANCELLED;
  }
  times_.waited(from, cpu);
  if (trace_recorder* const t = session_.trace())
    t->span(event_origin::compute, name, "wait", static_cast<std::uint64_t>(from), rg::now_ns());
  straggler_.resume();
  return RG_OK;
}

// Waits until the weights from `first` on have arrived.
rg_status model_hooks::wait_for_weights(std::uint64_t first, const char* name) noexcept {
  const strategy_host& strategy = session_.strategy();
  if (strategy.weights_from() <= first) return RG_OK;
  return wait(name, [&] { loop_.run_until([&] { return strategy.weights_from() <= first; }); });
}

rg_status model_hooks::sum_over_workers(const char* name, std::span<double> numbers) noexcept {
  if (failure_) return RG_E_CANCELLED;
  char what[64];
  std::snprintf(what, sizeof what, "sum over workers: %s", name);
  session_.control.operation(what);
  step_sums& sums = session_.strategy().sums();
  const rg_status status = wait("sum over workers", [&] {
    loop_.acquire();
    sums.begin(numbers);
    loop_.run_until([&] { return sums.done(); });
    sums.end(numbers);
  });
  if (status == RG_OK) session_.control.operation(pass_);
  return status;
}

// Returns whether a call of the model kept the rules. If not, reports to the coordinator at once, because the model's
// step() may never return.
bool model_hooks::keeps(const std::exception_ptr& broken) noexcept {
  if (!broken) return true;
  if (failure_) return false;
  failure_ = broken;
  report_to_coordinator(session_.control, [&]() -> nlohmann::json { std::rethrow_exception(broken); });
  return false;
}

} // namespace regatta
