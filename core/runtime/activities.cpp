// SPDX-License-Identifier: Apache-2.0
//
// The loop of a strategy_host: begins the strategy's activities, reports gradients and completions to it, and keeps its
// first failure.
#include "runtime/strategy_host.hpp"

#include "base/failure.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

const char* name_of(std::uint64_t activity) {
  constexpr std::array<const char*, 6> names = {"", "begin_step", "end_step", "serve", "finish", "pull_rows"};
  return names[activity];
}

} // namespace

void strategy_host::check_status(rg_status status, const char* what) {
  if (status >= 0) return; // building the text would cost more than a small message
  check(status, plugin_host_, fmt::format("strategy {}: {}", setup_.strategy_id, what));
}

void strategy_host::begin(activity a, std::uint64_t step) {
  const rg_strategy& s = *setup_.strategy;
  const auto begun = [&](auto slot, auto... arguments) {
    if (slot) {
      running_[a] = true;
      check_status(slot(self_, arguments..., a), name_of(a));
    }
  };
  const rg_rows* rows = tables_->rows().data();
  switch (a) {
  case begin_step:
    step_ = step;
    buckets_.begin_step();
    begun(s.begin_step, step, rows, arena_.table_count);
    break;
  case end_step:
    report_ready_buckets();
    begun(s.end_step, step);
    if (!s.end_step) buckets_.end_step();
    break;
  case serve: begun(s.serve); break;
  case finish: begun(s.finish); break;
  case pull_rows:
    if (!s.pull_rows)
      throw failure(exit_code::plugin,
                    fmt::format("strategy {} exchanges rows but has no pull_rows(): a model with sparse "
                                "tables cannot be evaluated",
                                setup_.strategy_id));
    begun(s.pull_rows, rows, arena_.table_count);
    break;
  }
  // An activity that fails before it waits for anything is already over, and poll() may never be called for it.
  require_success();
}

void strategy_host::end_activity(std::uint64_t which, rg_status status) {
  record_weights_fence();
  const bool known = which < running_.size() && running_[which];
  if (known) running_[which] = false;
  if (which == end_step) buckets_.end_step();
  if (known && status >= RG_OK && status <= RG_TIMEOUT) return;
  fail([&] {
    if (!known)
      throw failure(exit_code::plugin, fmt::format("strategy {}: done({}): no activity with this number is running",
                                                   setup_.strategy_id, which));
    const std::string name =
        fmt::format("strategy {}: {}{}", setup_.strategy_id, name_of(which),
                    which == end_step || which == begin_step ? fmt::format(" of step {}", step_) : "");
    check(status, plugin_host_, name);
    throw failure(exit_code::plugin,
                  fmt::format("{} ends with status {}, which the interface does not have", name, status));
  });
}

void strategy_host::fail(const std::function<void()>& throws) noexcept {
  try {
    throws();
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
  }
}

void strategy_host::require_success() const {
  if (failure_) std::rethrow_exception(failure_); // the strategy's own message comes first
  transfers_.require_success();
}

bool strategy_host::report_ready_buckets() {
  bool any = false;
  while (const auto bucket = buckets_.next_ready()) {
    any = true;
    if (setup_.trace && setup_.trace->on())
      setup_.trace->instant(event_origin::loop, "bucket ready", "hook", operations_.now(), "bucket", bucket->index);
    if (setup_.strategy->on_gradient)
      check_status(setup_.strategy->on_gradient(self_, step_, bucket->index, bucket->fence), "on_gradient");
  }
  return any;
}

bool strategy_host::poll(std::uint64_t timeout_ns, std::uint64_t spin_ns) {
  bool moved = report_ready_buckets();
  if (const std::uint64_t at = operations_.next_timer(); at != UINT64_MAX) {
    const std::uint64_t t = operations_.now();
    timeout_ns = std::min(timeout_ns, at > t ? at - t : 0);
  }
  transfers_.poll(timeout_ns, spin_ns, completions_);
  const rg_status run = operations_.take_ended(completions_, [this](const rg_op_commit& o, const double* total) {
    commit(is_server(o.role), total, o.step); // rows are committed by the host
  });
  if (!completions_.empty()) {
    moved = true;
    delivering_.swap(completions_); // operations that the strategy submits now end in the next round
    const rg_status status =
        setup_.strategy->completed(self_, delivering_.data(), static_cast<std::uint32_t>(delivering_.size()));
    delivering_.clear(); // also after a failure: a completion is delivered once
    check_status(status, "completed");
  }
  if (run < 0) fail([&] { check_status(run, "run"); }); // also if the strategy does not wait for it
  moved |= report_ready_buckets();
  require_success();
  return moved;
}

} // namespace regatta
