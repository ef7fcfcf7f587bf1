// SPDX-License-Identifier: Apache-2.0
#include "rank/timing/step_times.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <regatta/clock.hpp>

namespace regatta {

void step_times::trace_phase(const char* name, const char* category, std::int64_t begin, std::int64_t end) const {
  if (trace_)
    trace_->span(event_origin::compute, name, category, static_cast<std::uint64_t>(begin),
                 static_cast<std::uint64_t>(end));
}

// Records the CPU time of all threads of this process until now.
void step_times::trace_cpu(std::int64_t now) const {
  if (!trace_ || !trace_->on()) return;
  trace_event cpu;
  cpu.kind = event_kind::counter;
  cpu.begin = cpu.end = static_cast<std::uint64_t>(now);
  cpu.number = static_cast<std::uint64_t>(rg::read_clock_ns(CLOCK_PROCESS_CPUTIME_ID));
  trace_->add(cpu, "CPU time", "counter", "ns");
}

void step_times::begin_step() {
  step_ = {};
  host_ = {};
  waits_ = 0;
  has_rows_ = false;
  step_.paused = std::exchange(paused_, 0);
  step_.begin = rg::steady_ns();
  trace_cpu(step_.begin);
}

void step_times::input_read() {
  phase_ = rg::steady_ns();
  step_.input = phase_ - step_.begin;
  trace_phase("input", "phase", step_.begin, phase_);
  trace_cpu(phase_);
}

void step_times::rows_known() {
  const std::int64_t now = rg::steady_ns();
  has_rows_ = true;
  step_.forward = now - phase_;
  phase_ = now;
  update_begins();
}

void step_times::rows_arrived() {
  step_.update = static_cast<std::int64_t>(strategy_.worker_update_ns() - updated_before_);
  step_.stalled = step_.blocked = std::max<std::int64_t>(0, rg::steady_ns() - phase_ - step_.update);
  step_.stalled_at = phase_;
  trace_phase("rows of sparse tables", "wait", phase_, rg::steady_ns());
  host_.update_before = static_cast<double>(step_.update);
  host_.blocked_before = static_cast<double>(step_.blocked);
}

void step_times::micro_batch_begins() {
  phase_ = rg::steady_ns();
}

void step_times::pass_begins() {
  pass_ = backward_ = rg::steady_ns();
  has_backward_ = false;
  step_.input += pass_ - phase_;
  wait_ = backward_wait_ = 0;
}

void step_times::backward_begins() {
  backward_ = rg::steady_ns();
  has_backward_ = true;
}

void step_times::waited(std::int64_t from, std::int64_t cpu) {
  if (!wait_ && !backward_wait_) wait_at_ = from;
  (has_backward_ ? backward_wait_ : wait_) += rg::steady_ns() - from;
  exchange_cpu_ += rg::thread_cpu_ns() - cpu;
}

void step_times::pass_ends() {
  const std::int64_t now = rg::steady_ns();
  step_.forward += backward_ - pass_; // includes everything before the backward pass
  step_.backward += now - backward_ - backward_wait_;
  (has_backward_ ? step_.forward : step_.backward) -= wait_; // without RG_PHASE_BACKWARD all of the pass is backward
  if (!step_.stalled) step_.stalled_at = wait_at_;
  step_.stalled += wait_ + backward_wait_;
  waits_ += wait_ + backward_wait_;
  step_.compute_end = now;
  if (has_backward_) trace_phase("forward pass", "phase", pass_, backward_);
  trace_phase(has_backward_ ? "backward pass" : "forward and backward pass", "phase", backward_, now);
  trace_cpu(now);
}

void step_times::exchange_begins() {
  cpu_ = rg::thread_cpu_ns();
}

step_time step_times::end_step(std::uint64_t n) {
  const auto update = static_cast<std::int64_t>(strategy_.worker_update_ns() - updated_before_);
  step_.update += update;
  step_.end = rg::steady_ns();
  step_.blocked += step_.end - step_.compute_end - update + waits_;
  trace_phase("exchange", "wait", step_.compute_end, step_.end);
  if (trace_)
    trace_->span(event_origin::compute, "step", "step", static_cast<std::uint64_t>(step_.begin),
                 static_cast<std::uint64_t>(step_.end), "step", n);
  trace_cpu(step_.end);
  if (has_rows_) host_.update_after = static_cast<double>(update);
  updates_ = device_times_.spare();
  strategy_.collect_update_spans(updates_);
  device_times_.step_ends(n, std::move(updates_), host_);
  // Wall time of the update may exceed CPU time; the difference is clamped at zero.
  exchange_cpu_ += std::max<std::int64_t>(0, rg::thread_cpu_ns() - cpu_ - update);
  return step_;
}

void step_times::weights_arrived(step_time& of) {
  const std::int64_t now = rg::steady_ns();
  of.blocked += now - of.end;
  of.end = now;
}

// The device does not know the reason of a wait: all of it counts as communication, as where the clocks of peers cannot
// be compared.
void step_times::collect_device_times(rank_record& record, std::uint64_t warmup) {
  device_times_.collect([&](std::uint64_t n, const device_times::parts& s) {
    if (n < warmup || n - warmup >= record.steps.size()) return;
    step_time& t = record.steps[n - warmup];
    t.forward = std::llround(s.forward);
    t.backward = std::llround(s.backward);
    t.update = std::llround(s.update);
    t.blocked = std::llround(s.blocked);
    if (s.idle) t.input = std::min<std::int64_t>(t.input, std::llround(*s.idle));
    t.input += std::llround(s.input);
    t.compute_end = t.end;
    t.stalled = 0;
  });
}

} // namespace regatta
