// SPDX-License-Identifier: Apache-2.0
#include "rank/worker.hpp"

#include "base/failure.hpp"
#include "data/source.hpp"
#include "rank/batches.hpp"
#include "rank/evaluation.hpp"
#include "rank/inspection.hpp"
#include "rank/model_hooks.hpp"
#include "rank/pending_losses.hpp"
#include "rank/rank.hpp"
#include "rank/step_rows.hpp"
#include "rank/strategy_loop.hpp"
#include "rank/timing/step_times.hpp"
#include "rank/timing/timed_region.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <regatta/clock.hpp>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

class worker {
public:
  explicit worker(session& s);
  rank_record train();

private:
  step_time step(std::uint64_t n);
  void read_input(std::uint64_t n);
  void begin_exchange(std::uint64_t n);
  void compute(std::uint64_t n);
  void compute_micro_batch(std::uint64_t n, std::uint64_t m);
  void count_units();
  void end_exchange(std::uint64_t n);

  void prepare();
  void warm_up();
  std::uint64_t begin_region();
  std::uint64_t steps_to_time();
  void reserve(std::uint64_t steps);
  void end_region(std::uint64_t end);
  void finish(std::uint64_t end);
  void end_with_servers();

  void complete_step(step_time& of);
  void inspect(const std::string& when, std::uint64_t done);
  bool pause_for_evaluation(std::uint64_t done);
  void evaluate_if_due(std::uint64_t done);
  void evaluate(std::uint64_t done);
  void pull_rows(rg_batch& batch);
  void record_trace_of(std::uint64_t n, std::uint64_t end);

  session& session_;
  strategy_host& strategy_;
  const bool sparse_; // the model has sparse tables
  rank_record record_;
  strategy_loop loop_;
  batches batches_;
  std::optional<evaluation> evaluation_;
  step_rows rows_;
  step_times times_;
  model_hooks hooks_;
  pending_losses losses_;
  timed_region region_;
  std::uint64_t weights_at_start_ = 0; // checksum
  std::int64_t loop_cpu_at_start_ = 0; // CPU time of the second thread when the timed region began
  std::int64_t stopped_for_ = 0;       // an evaluation after the last timed step: it reached measure.target
};

worker::worker(session& s)
    : session_(s), strategy_(s.strategy()), sparse_(s.model().has_tables()), loop_(s), batches_(s),
      rows_(s.model(), s.strategy().tables()), times_(s.strategy(), s.device(), s.trace()), hooks_(s, loop_, times_),
      losses_(s, loop_, record_), region_(s, record_) {
  if (evaluation::wanted(s)) evaluation_.emplace(s);
}

rank_record worker::train() {
  prepare();
  warm_up();
  const std::uint64_t first = session_.job.warmup;
  std::uint64_t end = begin_region();
  for (std::uint64_t n = first; n < end; ++n) {
    record_trace_of(n, end);
    record_.steps.push_back(step(n));
    const bool last = n + 1 == end;
    if (!last && !evaluation::due(session_, n + 1)) continue;
    complete_step(record_.steps.back());
    if (!last && pause_for_evaluation(n + 1)) end = n + 1;
  }
  if (session_.trace()) session_.trace()->record(false);
  end_region(end);
  finish(end);
  return std::move(record_);
}

// Records a trace of measure.trace timed steps, from the second one on: the first one begins at a barrier.
void worker::record_trace_of(std::uint64_t n, std::uint64_t end) {
  if (!session_.trace()) return;
  const auto traced = static_cast<std::uint64_t>(session_.job.config.measure.trace);
  const std::uint64_t first = session_.job.warmup + (end - session_.job.warmup > traced ? 1 : 0);
  session_.trace()->record(n >= first && n < first + traced);
}

// --------------------------------------------------------------------------------------------------- one step ---

step_time worker::step(std::uint64_t n) {
  times_.begin_step();
  read_input(n);
  begin_exchange(n);
  compute(n);
  end_exchange(n);
  const step_time t = times_.end_step(n);
  session_.control.progress(n + 1, (n + 1) * session_.job.batch);
  return t;
}

// Acquires the strategy: it reads the windows of sparse tables, which are written next; no device uses them any more.
void worker::read_input(std::uint64_t n) {
  session_.control.operation("reading input", pace::rare);
  if (batches_.sums_counts(n)) loop_.release(); // a co-located server keeps serving workers that still compute
  batches_.begin(n);
  times_.input_read();
  loop_.acquire();
}

void worker::begin_exchange(std::uint64_t n) {
  if (sparse_) {
    rows_.set(session_.job.micro_batches(), [this](std::uint64_t m) { return batches_.micro(m); });
    times_.rows_known();
    const std::span<const rg_rows> rows = strategy_.tables().rows();
    record_.touched_rows.resize(rows.size()); // allocates in the first step
    for (std::size_t t = 0; t < rows.size() && n >= session_.job.warmup; ++t) record_.touched_rows[t] += rows[t].count;
    session_.control.operation("waiting for the rows of sparse tables");
  }
  strategy_.begin(strategy_host::begin_step, n);
  loop_.run_until([this] { return strategy_.done(strategy_host::begin_step); });
  loop_.release();
  if (sparse_) times_.rows_arrived(); // without sparse tables begin_step takes no time
}

void worker::compute(std::uint64_t n) {
  losses_.begin_step();
  for (std::uint64_t m = 0; m < session_.job.micro_batches(); ++m) compute_micro_batch(n, m);
  if (sparse_ && losses_.last_is_pending()) {
    batches_.read_ahead(); // while the device computes
    times_.next_input_read();
    losses_.wait_until_at_most(0); // the gradients of rows are ready when the losses are
  }
  losses_.end_step(n);
  count_units();
}

void worker::compute_micro_batch(std::uint64_t n, std::uint64_t m) {
  times_.micro_batch_begins();
  rg_batch batch = batches_.micro(m);
  if (sparse_) strategy_.tables().attach(batch, true);
  session_.control.operation("forward pass");
  losses_.wait_until_at_most(1);
  times_.collect_device_times(record_, session_.job.warmup);
  const step_loss loss = hooks_.run(batch, n, m + 1 == session_.job.micro_batches());
  losses_.add(n, loss);
  if (loss.late) times_.device_pass_ends(loss.fence);
}

void worker::count_units() {
  if (const auto tokens = batches_.tokens())
    record_.unit_counts.push_back(*tokens);
  else if (!batches_.mine().empty())
    record_.unit_counts.push_back(batches_.mine()[0]);
}

// Holds the strategy afterwards.
void worker::end_exchange(std::uint64_t n) {
  session_.control.operation("exchanging gradients and weights");
  times_.exchange_begins();
  loop_.acquire();
  times_.update_begins();
  strategy_.begin(strategy_host::end_step, n);
  loop_.run_until([this] { return strategy_.done(strategy_host::end_step); });
}

// Waits for all weights and for the device, and counts the time to the step `of` that the caller has just ended. Holds
// the strategy afterwards.
void worker::complete_step(step_time& of) {
  loop_.run_until([this] { return strategy_.weights_from() == 0; });
  strategy_.synchronize();
  losses_.wait_until_at_most(0);
  step_times::weights_arrived(of);
  times_.collect_device_times(record_, session_.job.warmup);
  times_.pause_device();
}

// ----------------------------------------------------------------------------------- around the timed region ---

void worker::prepare() {
  if (session_.cluster.server >= 0) strategy_.begin(strategy_host::serve, 0);
  record_.loss_sums.reserve(std::min<std::uint64_t>(session_.job.warmup + session_.job.steps, steps_reserved));
  weights_at_start_ = checksum_of_weights(strategy_);
}

void worker::warm_up() {
  const std::uint64_t steps = session_.job.warmup;
  for (std::uint64_t n = 0; n < steps; ++n) {
    step_time t = step(n);
    // for an evaluation, and so that no work of the last warm-up step falls into the region
    complete_step(t);
    record_.warm_up_ns.push_back(static_cast<double>(t.end - t.begin));
    evaluate_if_due(n + 1);
  }
  if (steps) inspect("after warm-up", steps);
}

// Returns the number of the step after the last timed one. Holds the strategy afterwards.
std::uint64_t worker::begin_region() {
  session_.control.operation("waiting at the barrier after warm-up");
  loop_.release(); // a co-located server keeps serving workers that are not there yet
  batches_.finish_sum();
  const std::uint64_t steps = steps_to_time(), end = session_.job.warmup + steps;
  reserve(steps);
  batches_.end_at(end);
  times_.forget_exchange_cpu();
  loop_cpu_at_start_ = static_cast<std::int64_t>(loop_.thread_cpu_ns());
  session_.control.barrier("start");
  loop_.acquire();
  region_.begin();
  return end;
}

// Makes the records of steps long enough, so that they allocate nothing in the timed region.
void worker::reserve(std::uint64_t steps) {
  const auto room = [](std::uint64_t n) { return std::min<std::uint64_t>(n, steps_reserved); };
  record_.steps.reserve(room(steps));
  record_.loss_sums.reserve(room(session_.job.warmup + steps));
  record_.loss_counts.reserve(room(session_.job.warmup + steps));
  record_.unit_counts.clear();
  record_.unit_counts.reserve(room(steps));
}

// Returns the number of timed steps, the same on all ranks: the given number, or as many as fill measure.seconds at the
// pace of worker 0's warm-up, rounded up to whole periods of the strategy.
std::uint64_t worker::steps_to_time() {
  double mine = 0;
  if (session_.cluster.worker == 0) {
    std::uint64_t steps = session_.job.steps;
    if (!steps) {
      std::vector<double> warm_up = record_.warm_up_ns;
      if (warm_up.empty()) warm_up.push_back(1e9);
      const auto middle = warm_up.begin() + static_cast<std::ptrdiff_t>(warm_up.size() / 2);
      std::nth_element(warm_up.begin(), middle, warm_up.end());
      const double pace = std::max(*middle, 1.0);
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

void worker::end_region(std::uint64_t end) {
  region_.end();
  record_.region_end -= stopped_for_;
  record_.samples = (end - session_.job.warmup) * session_.job.batch;
  record_.counts_tokens = batches_.tokens().has_value();
  record_.bound = session_.bound();
  record_.agrees = session_.agrees();
  record_.communication_ns =
      times_.exchange_cpu_ns() + static_cast<std::int64_t>(loop_.thread_cpu_ns()) - loop_cpu_at_start_;
}

void worker::finish(std::uint64_t end) {
  end_with_servers();
  if (sparse_) evaluate(end); // a server holds the rows until the workers finish
  session_.control.operation("finishing: the last bytes and updates", pace::rare);
  const std::int64_t finishing = sparse_ ? rg::steady_ns() : record_.region_end + stopped_for_;
  loop_.acquire();
  strategy_.begin(strategy_host::finish, end);
  loop_.run_until([this] {
    return strategy_.done(strategy_host::finish) && strategy_.done(strategy_host::serve) && !strategy_.busy();
  });
  strategy_.synchronize();
  record_.drain_ns = rg::steady_ns() - finishing;
  region_.copy_records_of_steps();
  if (!sparse_) evaluate(end);
  inspect("after the last step", end);
  strategy_.require_success();
  record_.weights_moved = checksum_of_weights(strategy_) != weights_at_start_ || any_row_changed(strategy_);
  record_.skipped_records = session_.data().skipped();
}

// Lets servers end their timed regions after all workers have ended theirs and before any worker finishes. Releases the
// strategy.
void worker::end_with_servers() {
  loop_.release(); // a co-located server keeps serving workers that are not there yet
  if (session_.cluster.servers == 0) return;
  session_.control.operation("waiting at the barrier after the last step");
  session_.control.barrier("end");
  session_.control.barrier("finish");
}

// -------------------------------------------------------------------------------------------- between steps ---

// Checks memory and gradients after `done` steps, while nothing is pending. Holds the strategy afterwards.
void worker::inspect(const std::string& when, std::uint64_t done) {
  session_.control.operation("checking memory and gradients");
  loop_.acquire();
  session_.require_no_damage(when);
  // fp16 may overflow: such a step is skipped, and the loss scale reduced.
  const bool gradient = session_.job.config.train.precision == "fp16" ? finite_and_not_zero(strategy_)
                                                                      : require_finite_gradients(strategy_, when);
  record_.weights_should_move = record_.weights_should_move || (gradient && strategy_.learns_before(done));
}

// Returns whether the metric reached measure.target, so that step done - 1 was the last one.
bool worker::pause_for_evaluation(std::uint64_t done) {
  const std::int64_t begin = rg::steady_ns();
  region_.pause();
  evaluate_if_due(done);
  if (trace_recorder* const t = session_.trace())
    t->span(event_origin::compute, "evaluation", "evaluation", static_cast<std::uint64_t>(begin), rg::now_ns());
  region_.resume();
  const std::int64_t paused = rg::steady_ns() - begin;
  times_.paused(paused);
  if (!evaluation_->reached_target()) return false;
  stopped_for_ = paused;
  return true;
}

// Requires that this thread holds the strategy, and holds it afterwards.
void worker::evaluate_if_due(std::uint64_t done) {
  if (!evaluation::due(session_, done)) return;
  loop_.release(); // a co-located server keeps serving workers that are not there yet
  batches_.finish_sum();
  evaluate(done);
  loop_.acquire();
}

void worker::evaluate(std::uint64_t done) {
  if (!evaluation_) return;
  const std::int64_t begin = rg::steady_ns();
  const std::optional<double> value = evaluation_->run([this](rg_batch& batch) {
    if (sparse_) pull_rows(batch);
  });
  record_.evaluation_ns += rg::steady_ns() - begin;
  if (!value) return;
  record_.metric = session_.model().info().metric ? session_.model().info().metric : "metric";
  record_.metric_value = value;
  // If the target ended training, the final weights are evaluated after the same step again.
  if (record_.metric_curve.empty() || record_.metric_curve.back().first != done)
    record_.metric_curve.emplace_back(done, *value);
}

// Makes the strategy pull the rows that a batch of an evaluation touches, and sets them in the batch.
void worker::pull_rows(rg_batch& batch) {
  loop_.acquire();
  rows_.set(batch);
  strategy_.begin(strategy_host::pull_rows, 0);
  loop_.run_until([this] { return strategy_.done(strategy_host::pull_rows); });
  loop_.release();
  strategy_.tables().attach(batch, false);
}

} // namespace

rank_record run_worker(session& s) {
  return worker(s).train();
}

} // namespace regatta
