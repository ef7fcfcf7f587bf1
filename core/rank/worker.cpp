// SPDX-License-Identifier: Apache-2.0
#include "rank/worker.hpp"

#include "base/failure.hpp"
#include "data/source.hpp"
#include "memory/regions.hpp"
#include "rank/clock.hpp"
#include "rank/loop.hpp"
#include "rank/region.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

// One buffer an input, for one micro-batch.
class batch_memory {
public:
  batch_memory(const std::vector<rg_input>& inputs, std::uint64_t samples) {
    for (const rg_input& in : inputs) {
      std::uint64_t elements = samples;
      for (std::uint32_t d = 0; d < in.ndim; ++d) elements *= static_cast<std::uint64_t>(in.shape[d]);
      memory_.push_back(allocate_aligned(elements * rg::size_of(in.type)));
      pointers_.push_back(memory_.back().get());
    }
  }
  std::span<void* const> pointers() const { return pointers_; }

private:
  std::vector<std::unique_ptr<void, aligned_free>> memory_;
  std::vector<void*> pointers_;
};

class worker {
public:
  explicit worker(session& s)
      : session_(s), loop_(
                         s.exchange(), [&s] { s.wake(); }, [&s] { return s.control.aborted(); }, s.job.spin_ns),
        micro_(s.job.batch / static_cast<std::uint64_t>(s.job.config.train.accumulate)), source_(s.data()),
        sparse_(s.model().has_tables()) {
    // The rows of all micro-batches are asked for before the first one runs, so all of them are there at once.
    const std::uint64_t batches = sparse_ ? static_cast<std::uint64_t>(s.job.config.train.accumulate) : 1;
    for (std::uint64_t b = 0; b < batches; ++b) memory_.emplace_back(s.model().inputs(), micro_);
    ready_end_.resize(s.model().tensors().size(), 0);
    const rg_arena& a = s.exchange().arena();
    for (std::uint32_t i = 0; i < a.slice_count; ++i)
      ready_end_[a.slices[i].tensor] = a.slices[i].first + a.slices[i].count;
    hooks_ = rg::make_versioned<rg_hooks>();
    hooks_.context = this;
    hooks_.need = [](void*, std::uint32_t) -> rg_status { return RG_OK; }; // end_step waits for all weights
    hooks_.ready = [](void* self, std::uint32_t tensor, rg_fence) {
      auto& w = *static_cast<worker*>(self);
      if (w.last_micro_) w.loop_.gradients_ready(w.ready_end_[tensor]);
    };
    hooks_.phase = [](void* self, std::uint32_t, rg_fence) {
      auto& w = *static_cast<worker*>(self);
      w.backward_begin_ = steady_ns();
      w.session_.control.operation("backward pass");
    };
  }

  rank_record run();

private:
  step_time step(std::uint64_t n, rank_record& record);
  void read_batch(std::uint64_t step, std::uint64_t first, batch_memory& into);
  rg_batch batch_of(std::uint64_t step, std::uint64_t micro, const batch_memory& inputs) const;
  void set_rows(const rg_batch& batch);
  void bring_rows(std::uint64_t step, step_time& t);
  void pull_rows(rg_batch& batch);
  std::uint64_t steps_to_time();
  void evaluate(rank_record& record);

  session& session_;
  loop loop_;
  std::uint64_t micro_; // samples of a micro-batch
  data_source& source_;
  bool sparse_;                      // the model has sparse tables
  std::vector<batch_memory> memory_; // of one micro-batch, or, with sparse tables, of all
  bool filled_ = false;
  std::vector<rg_rows> rows_;                      // of a batch, by table
  std::vector<std::vector<std::uint64_t>> unions_; // of several batches, by table
  std::vector<std::uint64_t> merged_;
  std::vector<std::uint64_t> ready_end_; // by tensor: where the arena is final once its gradient is
  rg_hooks hooks_{};
  bool last_micro_ = true;
  std::int64_t backward_begin_ = 0;
  std::vector<std::int64_t> warm_; // times of the warm-up's steps
  std::int64_t end_step_cpu_ = 0;  // CPU time of this thread in end_step
};

void worker::read_batch(std::uint64_t step, std::uint64_t first, batch_memory& into) {
  // With several micro-batches a constant source has several batches.
  if (filled_ && source_.constant() && session_.job.config.train.accumulate == 1) return;
  session_.control.operation("reading input");
  source_.fill(step, session_.job.global_batch(), first, micro_, into.pointers());
  filled_ = true;
}

rg_batch worker::batch_of(std::uint64_t step, std::uint64_t micro, const batch_memory& inputs) const {
  auto batch = rg::make_versioned<rg_batch>();
  batch.input_count = static_cast<std::uint32_t>(inputs.pointers().size());
  batch.inputs = inputs.pointers().data();
  batch.samples = batch.valid = micro_;
  batch.step = step;
  batch.first_sample = static_cast<std::uint64_t>(session_.cluster.worker) * session_.job.batch + micro * micro_;
  batch.global_samples = session_.job.global_batch();
  batch.seed = session_.job.config.seed;
  const bool last = micro + 1 == static_cast<std::uint64_t>(session_.job.config.train.accumulate);
  batch.flags = (micro ? RG_BATCH_ACCUMULATE : 0) | (last ? RG_BATCH_LAST : 0);
  return batch;
}

// Asks the model which rows the batch touches.
void worker::set_rows(const rg_batch& batch) {
  const auto& list = session_.exchange().tables().list();
  rows_.assign(list.size(), rg::make_versioned<rg_rows>());
  for (std::size_t t = 0; t < list.size(); ++t) rows_[t].tensor = list[t].tensor;
  session_.model().ask(session_.model().functions().rows(session_.model().self(), &batch, rows_.data()), "rows");
}

// Reads the step's batches and has the strategy bring the rows that they touch.
void worker::bring_rows(std::uint64_t n, step_time& t) {
  tables& tables = session_.exchange().tables();
  unions_.resize(tables.list().size());
  for (std::uint64_t m = 0; m < memory_.size(); ++m) {
    const std::int64_t before = steady_ns();
    const rg_batch batch = batch_of(n, m, memory_[m]);
    read_batch(n, batch.first_sample, memory_[m]);
    const std::int64_t read = steady_ns();
    t.input += read - before;
    set_rows(batch);
    if (memory_.size() > 1)
      for (std::size_t i = 0; i < rows_.size(); ++i) {
        const std::span rows(rows_[i].rows, rows_[i].count);
        merged_.clear();
        if (m)
          std::set_union(unions_[i].begin(), unions_[i].end(), rows.begin(), rows.end(), std::back_inserter(merged_));
        else
          merged_.assign(rows.begin(), rows.end());
        unions_[i].swap(merged_);
      }
    t.forward += steady_ns() - read;
  }
  if (memory_.size() > 1)
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      rows_[i].rows = unions_[i].data();
      rows_[i].count = unions_[i].size();
    }
  tables.set_rows(rows_);
}

step_time worker::step(std::uint64_t n, rank_record& record) {
  exchange& x = session_.exchange();
  const auto micros = static_cast<std::uint64_t>(session_.job.config.train.accumulate);
  step_time t;
  t.begin = steady_ns();
  loop_.take(); // rows of tables are put into the windows, which the strategy reads
  if (sparse_) bring_rows(n, t);
  const std::int64_t asked = steady_ns();
  const std::uint64_t updated_before = x.worker_update_ns();
  if (sparse_) session_.control.operation("waiting for the rows of sparse tables");
  x.begin(exchange::begin_step, n);
  loop_.run_until([&] { return x.done(exchange::begin_step); });
  loop_.release();
  if (sparse_) { // without, it is over at once
    t.update = static_cast<std::int64_t>(x.worker_update_ns() - updated_before);
    t.blocked = std::max<std::int64_t>(0, steady_ns() - asked - t.update);
  }

  auto result = rg::make_versioned<rg_step_result>();
  double loss = 0;
  std::uint64_t count = 0;
  for (std::uint64_t m = 0; m < micros; ++m) {
    const std::int64_t before = steady_ns();
    batch_memory& inputs = memory_[sparse_ ? m : 0];
    rg_batch batch = batch_of(n, m, inputs);
    if (sparse_) {
      const auto tables = x.tables().batch(true);
      batch.tables = tables.data();
      batch.table_count = static_cast<std::uint32_t>(tables.size());
    } else {
      read_batch(n, batch.first_sample, inputs);
    }
    session_.control.operation("forward pass");
    const std::int64_t from = backward_begin_ = steady_ns();
    t.input += from - before;
    last_micro_ = m + 1 == micros;
    session_.model().ask(session_.model().functions().step(session_.model().self(), &batch, &hooks_, &result), "step");
    const std::int64_t to = steady_ns();
    t.forward += backward_begin_ - from;
    t.backward += to - backward_begin_;
    t.compute_end = to;
    loss += result.loss_sum;
    count += result.count;
  }
  if (!std::isfinite(loss))
    throw failure(exit_code::wrong,
                  fmt::format("the loss of step {} is not finite: training diverged; try a smaller optimizer.lr", n));
  record.loss_sums.push_back(loss);
  record.loss_counts.push_back(count);

  session_.control.operation("exchanging gradients and weights");
  const std::int64_t cpu = thread_cpu_ns();
  loop_.take();
  const std::uint64_t updated = x.worker_update_ns();
  x.begin(exchange::end_step, n);
  loop_.run_until([&] { return x.done(exchange::end_step); });
  const auto update = static_cast<std::int64_t>(x.worker_update_ns() - updated);
  t.update += update;
  t.end = steady_ns();
  t.blocked += t.end - t.compute_end - update;
  // The update is timed by the wall: where others took the CPU from it, what is left would fall below nothing.
  end_step_cpu_ += std::max<std::int64_t>(0, thread_cpu_ns() - cpu - update);
  session_.control.progress(n + 1, (n + 1) * session_.job.batch);
  return t;
}

// The number of timed steps, the same on all ranks: given, or as many as fill the seconds at the pace of worker 0's
// warm-up, rounded up to whole periods of the strategy.
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
    mine = static_cast<double>(steps);
  }
  return static_cast<std::uint64_t>(session_.control.sum("steps", {mine})[0]);
}

rank_record worker::run() {
  rank_record record;
  timed_region region(session_);
  exchange& x = session_.exchange();
  const std::uint64_t warmup = session_.job.warmup;
  if (session_.cluster.server >= 0) x.begin(exchange::serve, 0);
  record.loss_sums.reserve(warmup + session_.job.steps);
  for (std::uint64_t n = 0; n < warmup; ++n) {
    const step_time t = step(n, record);
    warm_.push_back(t.end - t.begin);
  }
  session_.control.operation("meeting the other workers after warm-up");
  loop_.release(); // a server that shares the rank goes on serving those who are not there yet
  const std::uint64_t steps = steps_to_time();
  record.steps.reserve(steps);
  record.loss_sums.reserve(warmup + steps);
  record.loss_counts.reserve(warmup + steps);
  end_step_cpu_ = 0;
  const auto thread_before = static_cast<std::int64_t>(loop_.thread_cpu_ns());
  session_.control.barrier("start");
  loop_.take();
  region.begin(record);
  for (std::uint64_t n = warmup; n < warmup + steps; ++n) record.steps.push_back(step(n, record));
  loop_.take();
  region.end(record);
  record.samples = steps * session_.job.batch;
  record.communication_ns = end_step_cpu_ + static_cast<std::int64_t>(loop_.thread_cpu_ns()) - thread_before;

  if (sparse_) evaluate(record); // a server holds the rows until it hears goodbye
  session_.control.operation("finishing: the last bytes and updates");
  const std::int64_t finishing = sparse_ ? steady_ns() : record.region_end;
  loop_.take();
  x.begin(exchange::finish, warmup + steps);
  loop_.run_until([&] { return x.done(exchange::finish) && x.done(exchange::serve) && !x.busy(); });
  record.drain_ns = steady_ns() - finishing;
  if (!sparse_) evaluate(record);
  return record;
}

// Has the strategy bring the rows that a batch of an evaluation touches, and shows them to it.
void worker::pull_rows(rg_batch& batch) {
  exchange& x = session_.exchange();
  loop_.take();
  set_rows(batch);
  x.tables().set_rows(rows_);
  x.begin(exchange::pull_rows, 0);
  loop_.run_until([&] { return x.done(exchange::pull_rows); });
  loop_.release();
  const auto tables = x.tables().batch(false);
  batch.tables = tables.data();
  batch.table_count = static_cast<std::uint32_t>(tables.size());
}

// Every worker takes its turn of the batches, with running statistics averaged over workers; sums are added up over
// ranks.
void worker::evaluate(rank_record& record) {
  if (session_.job.config.data.evaluation_path.empty()) return;
  session_.control.operation("evaluating");
  if (sparse_) loop_.release(); // a server that shares the rank goes on serving
  const rg_model& f = session_.model().functions();
  const std::uint32_t workers = session_.cluster.workers;
  for (auto& state : session_.states()) {
    if (state.empty()) continue;
    const auto sums = session_.control.sum("state", std::vector<double>(state.begin(), state.end()));
    std::transform(sums.begin(), sums.end(), state.begin(), [&](double v) { return static_cast<float>(v / workers); });
  }
  const auto source =
      make_evaluation_source(session_.job.config.data, session_.model().inputs(), session_.job.config.seed);
  std::vector<double> sums(session_.model().info().metric_sums, 0.0);
  const std::uint64_t batches = (source->size() + micro_ - 1) / micro_;
  for (std::uint64_t b = static_cast<std::uint64_t>(session_.cluster.worker); b < batches; b += workers) {
    const std::uint64_t first = b * micro_;
    source->fill(0, source->size(), first, micro_, memory_[0].pointers());
    auto batch = rg::make_versioned<rg_batch>();
    batch.input_count = static_cast<std::uint32_t>(memory_[0].pointers().size());
    batch.inputs = memory_[0].pointers().data();
    batch.samples = batch.global_samples = micro_;
    batch.first_sample = first;
    batch.valid = std::min(micro_, source->size() - first);
    batch.seed = session_.job.config.seed;
    if (sparse_) pull_rows(batch);
    session_.model().ask(f.evaluate(session_.model().self(), &batch, sums.data()), "evaluate");
  }
  const auto total = session_.control.sum("metric", sums);
  if (!f.metric || total.empty()) return;
  double value = 0;
  session_.model().ask(f.metric(session_.model().self(), total.data(), &value), "metric");
  record.metric = session_.model().info().metric ? session_.model().info().metric : "metric";
  record.metric_value = value;
}

} // namespace

rank_record run_worker(session& s) {
  return worker(s).run();
}

} // namespace regatta
