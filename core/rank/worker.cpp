// SPDX-License-Identifier: Apache-2.0
#include "rank/worker.hpp"

#include "base/clock.hpp"
#include "base/failure.hpp"
#include "data/source.hpp"
#include "rank/batches.hpp"
#include "rank/evaluation.hpp"
#include "rank/hook_rules.hpp"
#include "rank/inspection.hpp"
#include "rank/loop.hpp"
#include "rank/rank.hpp"
#include "rank/straggler.hpp"
#include "rank/timing/device_times.hpp"
#include "rank/timing/timed_region.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

class worker {
public:
  explicit worker(session& s)
      : session_(s), loop_(
                         s.exchange(), s.control, s.report(), [&s] { s.wake(); }, [&s] { return s.control.aborted(); },
                         s.job.spin_ns,
                         // Report at once: the compute thread may be waiting for ranks that wait for this one
                         [&s](const std::exception_ptr& e) {
                           report_to_coordinator(s.control, [&]() -> nlohmann::json { std::rethrow_exception(e); });
                         }),
        sparse_(s.model().has_tables()), batches_(s), slow_(slowness(s)), times_(s.device()),
        rules_("model " + s.job.config.model.id, s.model().tensors(), last_dense(s)) {
    if (evaluation::wanted(s)) evaluation_.emplace(s);
    ready_end_.resize(s.model().tensors().size(), 0);
    first_.resize(ready_end_.size(), UINT64_MAX);
    const rg_arena& a = s.exchange().arena();
    for (std::uint32_t i = 0; i < a.slice_count; ++i) {
      first_[a.slices[i].tensor] = a.slices[i].first;
      ready_end_[a.slices[i].tensor] = a.slices[i].first + a.slices[i].count;
    }
    // A tensor that is not dense is ready when the dense tensors before it are.
    for (std::size_t i = 1; i < ready_end_.size(); ++i) ready_end_[i] = std::max(ready_end_[i], ready_end_[i - 1]);
    for (const std::uint64_t end : s.exchange().bucket_ends())
      awaited_.push_back(static_cast<std::uint32_t>(std::ranges::lower_bound(ready_end_, end) - ready_end_.begin()));
    awaited_.erase(std::unique(awaited_.begin(), awaited_.end()), awaited_.end());
    hooks_ = rg::make_versioned<rg_hooks>();
    hooks_.context = this;
    hooks_.awaited = awaited_.data();
    hooks_.awaited_count = static_cast<std::uint32_t>(awaited_.size());
    hooks_.need = [](void* self, std::uint32_t tensor) -> rg_status {
      return static_cast<worker*>(self)->need(tensor);
    };
    if (s.device())
      hooks_.need_after = [](void* self, std::uint32_t tensor, rg_fence* after) -> rg_status {
        auto& w = *static_cast<worker*>(self);
        const rg_status status = w.need(tensor);
        *after = w.session_.exchange().weights_after();
        return status;
      };
    hooks_.ready = [](void* self, std::uint32_t tensor, rg_fence fence) {
      auto& w = *static_cast<worker*>(self);
      w.session_.control.status().worked();
      if (!w.last_micro_ || !w.keeps(w.rules_.ready(tensor))) return;
      w.slow_.compute(false);
      w.loop_.gradients_ready(w.ready_end_[tensor], fence);
    };
    hooks_.phase = [](void* self, std::uint32_t phase, rg_fence fence) {
      auto& w = *static_cast<worker*>(self);
      if (phase == RG_PHASE_FORWARD) return w.times_.forward(fence);
      w.times_.backward(fence);
      w.slow_.compute(true);
      w.wait_for_weights(0); // weights always arrive before the gradients that were computed with them are exchanged
      w.backward_begin_ = steady_ns();
      w.session_.control.operation("backward pass");
    };
  }

  rank_record run();

private:
  static double slowness(const session& s) {
    const straggler_config& slow = s.job.config.cluster.straggler;
    return slow.rank == s.cluster.worker ? slow.factor : 1;
  }
  static std::int64_t last_dense(const session& s);
  bool keeps(const std::exception_ptr& broken) noexcept;
  rg_status need(std::uint32_t tensor) noexcept;
  rg_status wait_for_weights(std::uint64_t first) noexcept;
  void take_all_weights(step_time& of, rank_record& record);
  void take_late_losses(std::size_t leave, rank_record& record);
  void take_device_times(rank_record& record);
  void require_finite(double loss, std::uint64_t step) const;
  step_time step(std::uint64_t n, rank_record& record);
  void set_rows(const rg_batch& batch);
  void bring_rows();
  void pull_rows(rg_batch& batch);
  void inspect(const std::string& when, std::uint64_t done, rank_record& record);
  std::uint64_t steps_to_time();
  void end_together();
  void evaluate(std::uint64_t done, rank_record& record);
  void evaluate_if_due(std::uint64_t done, rank_record& record);

  session& session_;
  loop loop_;
  bool sparse_; // the model has sparse tables
  batches batches_;
  std::optional<evaluation> evaluation_;
  std::vector<rg_rows> rows_;                      // of a batch, by table
  std::vector<std::vector<std::uint64_t>> unions_; // of several batches, by table
  std::vector<std::uint64_t> merged_;
  // by tensor: end of the arena that is final once the tensor's gradient is ready
  std::vector<std::uint64_t> ready_end_;
  std::vector<std::uint32_t> awaited_; // the tensors that end a bucket
  straggler slow_;
  device_times times_;
  hook_rules rules_;
  std::vector<device::span> updates_; // of a step
  std::vector<std::uint64_t> first_;  // by tensor: its first weight in the arena
  std::int64_t waited_ = 0;           // time spent waiting for weights during a micro-batch's passes
  std::int64_t waited_at_ = 0;        // begin of the first of these waits
  std::exception_ptr waiting_error_;  // thrown when the model's step has returned
  struct late_loss {
    std::uint64_t step;
    const double* sum;
    rg_fence fence;
  };
  std::vector<late_loss> late_; // losses pending on a device, in the order of the passes; two at most
  rg_hooks hooks_{};
  bool last_micro_ = true;
  std::int64_t backward_begin_ = 0;
  std::vector<std::int64_t> warm_; // times of the warm-up steps
  std::int64_t end_step_cpu_ = 0;  // CPU time of this thread in end_step
};

// Calls the model's rows() to learn which rows the batch touches.
void worker::set_rows(const rg_batch& batch) {
  const auto& list = session_.exchange().tables().list();
  rows_.assign(list.size(), rg::make_versioned<rg_rows>());
  for (std::size_t t = 0; t < list.size(); ++t) rows_[t].tensor = list[t].tensor;
  session_.model().ask(session_.model().functions().rows(session_.model().self(), &batch, rows_.data()), "rows");
}

// Puts the numbers of all rows that the step's micro-batches touch into the windows.
void worker::bring_rows() {
  tables& tables = session_.exchange().tables();
  const auto micros = static_cast<std::uint64_t>(session_.job.config.train.accumulate);
  unions_.resize(tables.list().size());
  for (std::uint64_t m = 0; m < micros; ++m) {
    set_rows(batches_.micro(m));
    if (micros == 1) break;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const std::span rows(rows_[i].rows, rows_[i].count);
      merged_.clear();
      if (m)
        std::set_union(unions_[i].begin(), unions_[i].end(), rows.begin(), rows.end(), std::back_inserter(merged_));
      else
        merged_.assign(rows.begin(), rows.end());
      unions_[i].swap(merged_);
    }
  }
  if (micros > 1)
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      rows_[i].rows = unions_[i].data();
      rows_[i].count = unions_[i].size();
    }
  tables.set_rows(rows_);
}

std::int64_t worker::last_dense(const session& s) {
  const rg_arena& a = s.exchange().arena();
  return a.slice_count ? std::int64_t{a.slices[a.slice_count - 1].tensor} : -1;
}

// Returns whether a call of the model kept the rules. If not, reports to the coordinator at once, because the model's
// step may never return.
bool worker::keeps(const std::exception_ptr& broken) noexcept {
  if (!broken) return true;
  if (waiting_error_) return false;
  waiting_error_ = broken;
  report_to_coordinator(session_.control, [&]() -> nlohmann::json { std::rethrow_exception(broken); });
  return false;
}

rg_status worker::need(std::uint32_t tensor) noexcept {
  if (waiting_error_ || !keeps(rules_.need(tensor))) return RG_E_CANCELLED;
  return wait_for_weights(first_[tensor]);
}

// Waits until the weights from `first` on have arrived. A failure is thrown when the model's step has returned.
rg_status worker::wait_for_weights(std::uint64_t first) noexcept {
  exchange& x = session_.exchange();
  if (x.weights_from() <= first) return RG_OK;
  slow_.compute(false);
  const std::int64_t from = steady_ns();
  if (!waited_) waited_at_ = from;
  try {
    loop_.run_until([&] { return x.weights_from() <= first; });
    loop_.release();
  } catch (...) {
    waiting_error_ = std::current_exception();
    return RG_E_CANCELLED;
  }
  waited_ += steady_ns() - from;
  slow_.resume();
  return RG_OK;
}

// Waits for all weights and for the device, and counts the time to the step `of` that asked for them. Holds the
// exchange afterwards.
void worker::take_all_weights(step_time& of, rank_record& record) {
  loop_.run_until([&] { return session_.exchange().weights_from() == 0; });
  session_.exchange().settle();
  take_late_losses(0, record);
  const std::int64_t end = steady_ns();
  of.blocked += end - of.end;
  of.end = end;
  take_device_times(record);
  times_.pause();
}

// Replaces the host's times, which only cover enqueueing, by those of the device. The device does not know the reason
// of a wait: all of it counts as communication, as where the clocks of peers cannot be compared.
void worker::take_device_times(rank_record& record) {
  times_.collect([&](std::uint64_t n, const device_times::parts& s) {
    const std::uint64_t warmup = session_.job.warmup;
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

void worker::require_finite(double loss, std::uint64_t step) const {
  if (std::isfinite(loss)) return;
  // Nothing was updated yet, so the learning rate cannot be the cause.
  if (step == 0)
    throw failure(exit_code::wrong,
                  fmt::format("the loss of step 0 is not finite: look at the input (data.source = \"{}\") or the "
                              "initial weights of model {}",
                              session_.job.config.data.source, session_.job.config.model.id));
  throw failure(exit_code::wrong,
                fmt::format("the loss of step {} is not finite: training diverged; try a smaller optimizer.lr", step));
}

// Waits until at most `leave` losses are pending on the device, so that this thread is never more than `leave` passes
// ahead.
void worker::take_late_losses(std::size_t leave, rank_record& record) {
  while (late_.size() > leave) {
    const late_loss l = late_.front();
    regatta::device& device = *session_.device();
    if (!device.passed(l.fence)) {
      device.hold(device::watching, l.fence);
      device.notify(device::watching);
      loop_.run_until([&] { return device.passed(l.fence); });
      loop_.release();
    }
    late_.erase(late_.begin());
    record.loss_sums[l.step] += *l.sum;
    if (late_.empty() || late_.front().step != l.step) require_finite(record.loss_sums[l.step], l.step);
  }
}

step_time worker::step(std::uint64_t n, rank_record& record) {
  exchange& x = session_.exchange();
  const auto micros = static_cast<std::uint64_t>(session_.job.config.train.accumulate);
  step_time t;
  t.begin = steady_ns();
  session_.control.operation("reading input", pace::rare);
  if (batches_.meets(n)) loop_.release(); // a co-located server keeps serving workers that still compute
  batches_.begin(n);
  const std::int64_t read = steady_ns();
  t.input = read - t.begin;
  loop_.take(); // the windows are written next; the strategy reads them, and no device uses them any more
  if (sparse_) {
    bring_rows();
    t.forward = steady_ns() - read;
  }
  const std::int64_t asked = steady_ns();
  const std::uint64_t updated_before = x.worker_update_ns();
  if (sparse_) session_.control.operation("waiting for the rows of sparse tables");
  x.begin(exchange::begin_step, n);
  loop_.run_until([&] { return x.done(exchange::begin_step); });
  loop_.release();
  device_times::host_part host;
  if (sparse_) { // without sparse tables begin_step takes no time
    t.update = static_cast<std::int64_t>(x.worker_update_ns() - updated_before);
    t.stalled = t.blocked = std::max<std::int64_t>(0, steady_ns() - asked - t.update);
    t.stalled_at = asked;
    host.update_before = static_cast<double>(t.update);
    host.blocked_before = static_cast<double>(t.blocked);
  }

  auto result = rg::make_versioned<rg_step_result>();
  record.loss_sums.push_back(0);
  bool late = false;
  std::uint64_t count = 0;
  std::int64_t waited = 0;
  for (std::uint64_t m = 0; m < micros; ++m) {
    const std::int64_t before = steady_ns();
    rg_batch batch = batches_.micro(m);
    if (sparse_) x.tables().show(batch, true);
    session_.control.operation("forward pass");
    take_late_losses(1, record);
    take_device_times(record);
    const std::int64_t from = backward_begin_ = steady_ns();
    t.input += from - before;
    last_micro_ = m + 1 == micros;
    rules_.begin(n);
    waited_ = 0;
    slow_.resume();
    const rg_status status = session_.model().functions().step(session_.model().self(), &batch, &hooks_, &result);
    if (waiting_error_) std::rethrow_exception(waiting_error_);
    session_.model().ask(status, "step");
    if (last_micro_) rules_.require_all_ready();
    slow_.compute(true);
    const std::int64_t to = steady_ns();
    t.forward += backward_begin_ - from - waited_; // includes everything before the backward pass
    waited += waited_;
    if (!t.stalled) t.stalled_at = waited_at_;
    t.stalled += waited_;
    t.backward += to - backward_begin_;
    t.compute_end = to;
    late = result.late;
    if (late) {
      late_.push_back({n, result.late, result.late_fence});
      times_.pass_ends(result.late_fence);
    } else {
      record.loss_sums.back() += result.loss_sum;
    }
    count += result.count;
  }
  if (sparse_ && late) {
    batches_.read_ahead(); // while the device computes
    host.read = times_.now();
    take_late_losses(0, record); // the gradients of rows are ready when the losses are
  }
  if (!late) require_finite(record.loss_sums.back(), n);
  record.loss_counts.push_back(count);
  if (const auto tokens = batches_.tokens())
    record.unit_counts.push_back(*tokens);
  else if (!batches_.mine().empty())
    record.unit_counts.push_back(batches_.mine()[0]);

  session_.control.operation("exchanging gradients and weights");
  const std::int64_t cpu = thread_cpu_ns();
  loop_.take();
  const std::uint64_t updated = x.worker_update_ns();
  x.begin(exchange::end_step, n);
  loop_.run_until([&] { return x.done(exchange::end_step); });
  const auto update = static_cast<std::int64_t>(x.worker_update_ns() - updated);
  t.update += update;
  t.end = steady_ns();
  t.blocked += t.end - t.compute_end - update + waited;
  updates_ = times_.spare();
  x.take_updates(updates_);
  if (sparse_) host.update_after = static_cast<double>(update);
  times_.step_ends(n, std::move(updates_), host);
  // Wall time of the update may exceed CPU time; the difference is clamped at zero.
  end_step_cpu_ += std::max<std::int64_t>(0, thread_cpu_ns() - cpu - update);
  session_.control.progress(n + 1, (n + 1) * session_.job.batch);
  return t;
}

// Checks memory and gradients after `done` steps, while nothing is pending. Holds the exchange afterwards.
void worker::inspect(const std::string& when, std::uint64_t done, rank_record& record) {
  exchange& x = session_.exchange();
  session_.control.operation("looking at memory and gradients");
  loop_.take();
  session_.require_no_damage(when);
  // fp16 may overflow: such a step is skipped, and the loss scale reduced.
  const bool gradient =
      session_.job.config.train.precision == "fp16" ? finite_and_not_zero(x) : require_finite_gradients(x, when);
  record.weights_should_move = record.weights_should_move || (gradient && x.learns_before(done));
}

// Returns the number of timed steps, the same on all ranks: the given number, or as many as fill measure.seconds at the
// pace of worker 0's warm-up, rounded up to whole periods of the strategy.
std::uint64_t worker::steps_to_time() {
  double mine = 0;
  if (session_.cluster.worker == 0) {
    std::uint64_t steps = session_.job.steps;
    if (!steps) {
      std::nth_element(warm_.begin(), warm_.begin() + static_cast<std::ptrdiff_t>(warm_.size() / 2), warm_.end());
      const double pace = warm_.empty() ? 1e9 : static_cast<double>(std::max<std::int64_t>(warm_[warm_.size() / 2], 1));
      steps = static_cast<std::uint64_t>(std::ceil(session_.job.config.measure.seconds * 1e9 / pace));
    }
    const std::uint64_t period = session_.job.period;
    steps = (std::max<std::uint64_t>(steps, 1) + period - 1) / period * period;
    if (steps > most_measured_steps)
      throw failure(
          exit_code::usage,
          fmt::format("measure.seconds: {} s would be {} steps at the pace of the warm-up, and at most {} are "
                      "kept in memory: measure for a shorter time",
                      session_.job.config.measure.seconds, steps, most_measured_steps));
    mine = static_cast<double>(steps);
  }
  return static_cast<std::uint64_t>(session_.control.sum("steps", {mine})[0]);
}

// Lets servers end their timed regions after all workers have ended theirs and before any worker finishes. Releases the
// exchange.
void worker::end_together() {
  loop_.release(); // a co-located server keeps serving workers that are not there yet
  if (session_.cluster.servers == 0) return;
  session_.control.operation("meeting the other workers after the last step");
  session_.control.barrier("end");
  session_.control.barrier("finish");
}

rank_record worker::run() {
  rank_record record;
  timed_region region(session_);
  exchange& x = session_.exchange();
  const std::uint64_t warmup = session_.job.warmup;
  if (session_.cluster.server >= 0) x.begin(exchange::serve, 0);
  const auto room = [](std::uint64_t n) { return std::min<std::uint64_t>(n, steps_reserved); };
  record.loss_sums.reserve(room(warmup + session_.job.steps));
  const std::uint64_t start = checksum_of_weights(x);
  for (std::uint64_t n = 0; n < warmup; ++n) {
    step_time t = step(n, record);
    // for an evaluation, and so that no work of the last warm-up step falls into the region
    take_all_weights(t, record);
    warm_.push_back(t.end - t.begin);
    evaluate_if_due(n + 1, record);
  }
  if (warmup) inspect("after warm-up", warmup, record);
  session_.control.operation("meeting the other workers after warm-up");
  loop_.release(); // a co-located server keeps serving workers that are not there yet
  batches_.settle();
  const std::uint64_t steps = steps_to_time();
  record.steps.reserve(room(steps));
  record.loss_sums.reserve(room(warmup + steps));
  record.loss_counts.reserve(room(warmup + steps));
  record.unit_counts.clear();
  record.unit_counts.reserve(room(steps));
  batches_.end_at(warmup + steps);
  end_step_cpu_ = 0;
  const auto thread_before = static_cast<std::int64_t>(loop_.thread_cpu_ns());
  session_.control.barrier("start");
  loop_.take();
  region.begin(record);
  std::int64_t paused = 0;
  for (std::uint64_t n = warmup; n < warmup + steps; ++n) {
    record.steps.push_back(step(n, record));
    record.steps.back().paused = std::exchange(paused, 0);
    const bool last = n + 1 == warmup + steps;
    if (!last && !evaluation::due(session_, n + 1)) continue;
    take_all_weights(record.steps.back(), record);
    if (last) break;
    const std::int64_t pausing = steady_ns();
    region.pause();
    evaluate_if_due(n + 1, record);
    region.resume();
    paused = steady_ns() - pausing;
  }
  region.end(record);
  record.samples = steps * session_.job.batch;
  record.counts_tokens = batches_.tokens().has_value();
  record.bound = session_.bound();
  record.agrees = session_.agrees();
  record.communication_ns = end_step_cpu_ + static_cast<std::int64_t>(loop_.thread_cpu_ns()) - thread_before;

  end_together();
  if (sparse_) evaluate(warmup + steps, record); // a server holds the rows until the workers finish
  session_.control.operation("finishing: the last bytes and updates", pace::rare);
  const std::int64_t finishing = sparse_ ? steady_ns() : record.region_end;
  loop_.take();
  x.begin(exchange::finish, warmup + steps);
  loop_.run_until([&] { return x.done(exchange::finish) && x.done(exchange::serve) && !x.busy(); });
  x.settle();
  record.drain_ns = steady_ns() - finishing;
  region.take_records_of_steps(record);
  if (!sparse_) evaluate(warmup + steps, record);
  inspect("after the last step", warmup + steps, record);
  x.require_success();
  record.weights_moved = checksum_of_weights(x) != start || any_row_changed(x);
  record.skipped_records = session_.data().skipped();
  return record;
}

// Makes the strategy pull the rows that a batch of an evaluation touches, and sets them in the batch.
void worker::pull_rows(rg_batch& batch) {
  exchange& x = session_.exchange();
  loop_.take();
  set_rows(batch);
  x.tables().set_rows(rows_);
  x.begin(exchange::pull_rows, 0);
  loop_.run_until([&] { return x.done(exchange::pull_rows); });
  loop_.release();
  x.tables().show(batch, false);
}

void worker::evaluate(std::uint64_t done, rank_record& record) {
  if (!evaluation_) return;
  const std::optional<double> value = evaluation_->run([this](rg_batch& batch) {
    if (sparse_) pull_rows(batch);
  });
  if (!value) return;
  record.metric = session_.model().info().metric ? session_.model().info().metric : "metric";
  record.metric_value = value;
  record.metric_curve.emplace_back(done, *value);
}

void worker::evaluate_if_due(std::uint64_t done, rank_record& record) {
  if (!evaluation::due(session_, done)) return;
  loop_.release(); // a co-located server keeps serving workers that are not there yet
  batches_.settle();
  evaluate(done, record);
  loop_.take();
}

} // namespace

rank_record run_worker(session& s) {
  return worker(s).run();
}

} // namespace regatta
