// SPDX-License-Identifier: Apache-2.0
#include "results/run_figures.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/failure.hpp"
#include "results/statistics.hpp"

namespace regatta {
namespace {

using records_view = std::vector<const rank_record*>;

double seconds(std::int64_t ns) {
  return 1e-9 * static_cast<double>(ns);
}

// Returns the length of the timed region without evaluations.
std::int64_t region_length(const rank_record& r) {
  std::int64_t length = r.region_end - r.region_begin;
  for (const step_time& s : r.steps) length -= s.paused;
  return length;
}

// Returns the workers' records by worker number. Throws failure if no figure can be computed from them.
records_view workers_of(const std::vector<rank_record>& records) {
  records_view workers;
  for (const rank_record& r : records)
    if (r.worker >= 0) workers.push_back(&r);
  std::ranges::sort(workers, {}, &rank_record::worker);
  if (workers.empty()) throw failure(exit_code::run, "no worker reported what it measured");
  for (const rank_record* w : workers) {
    if (w->steps.empty() || region_length(*w) <= 0)
      throw failure(exit_code::run, fmt::format("worker {} measured no step", w->worker));
    if (w->steps.size() != workers.front()->steps.size())
      throw failure(exit_code::run,
                    fmt::format("worker {} measured {} steps, but worker {} measured {}", w->worker, w->steps.size(),
                                workers.front()->worker, workers.front()->steps.size()));
  }
  return workers;
}

// The worker that ended its backward pass of a step last, and when, by the common clock.
struct last_worker {
  std::size_t worker = 0;
  std::int64_t at = std::numeric_limits<std::int64_t>::min();
};

std::vector<last_worker> last_workers(const records_view& workers, const common_clock& clock) {
  std::vector<last_worker> last(workers.front()->steps.size());
  for (std::size_t w = 0; w < workers.size(); ++w)
    for (std::size_t s = 0; s < last.size(); ++s) {
      const std::int64_t end = workers[w]->steps[s].compute_end, at = end - clock.ahead(*workers[w], end);
      if (at > last[s].at) last[s] = {w, at};
    }
  return last;
}

// Returns for every step when the last worker ended its backward pass, as time of this worker's clock.
std::vector<std::int64_t> last_compute_end(const rank_record& worker, const std::vector<last_worker>& last,
                                           const common_clock& clock) {
  std::vector<std::int64_t> ends;
  for (std::size_t s = 0; s < last.size(); ++s)
    ends.push_back(last[s].at + clock.ahead(worker, worker.steps[s].compute_end));
  return ends;
}

// Return how long the worker waited for the last worker, which had computed (at `last`) the step that this one depends
// on. wait_after() is the wait after the backward pass; wait_before() the wait before it, for the step before.
std::int64_t wait_after(const step_time& step, std::int64_t last) {
  return std::clamp<std::int64_t>(std::min(step.end, last) - step.compute_end, 0,
                                  std::max<std::int64_t>(step.blocked - step.stalled, 0));
}
std::int64_t wait_before(const step_time& step, std::int64_t last) {
  return std::clamp<std::int64_t>(last - step.stalled_at, 0, std::max<std::int64_t>(step.stalled, 0));
}

// Returns means over the first `counted` steps of one worker. `last` is empty if workers do not wait for peers. The
// worker may be `bound` steps ahead.
time_parts partition(const rank_record& worker, std::size_t counted, const std::vector<std::int64_t>& last,
                     std::uint64_t bound) {
  time_parts sum;
  for (std::size_t s = 0; s < counted; ++s) {
    const step_time& t = worker.steps[s];
    std::int64_t wait = 0;
    if (!last.empty() && s >= bound) wait += wait_after(t, last[s - bound]);
    if (!last.empty() && s > bound) wait += wait_before(t, last[s - bound - 1]);
    sum.input += seconds(t.input);
    sum.forward += seconds(t.forward);
    sum.backward += seconds(t.backward);
    sum.update += seconds(t.update);
    sum.wait += seconds(wait);
    sum.exposed_communication += seconds(t.blocked - wait);
    sum.other += seconds(t.end - t.begin - t.input - t.forward - t.backward - t.update - t.blocked);
  }
  for (const auto& [name, part] : time_part_names) sum.*part /= static_cast<double>(counted);
  return sum;
}

// Returns how many steps the worker made within `length` of its own begin. The step that `length` interrupts counts by
// the part of its time that lies within: if it did not count at all, a worker that ends a moment later than the first
// one would lose a whole step.
double steps_within(const rank_record& worker, std::int64_t length) {
  double counted = 0;
  std::int64_t paused = 0, previous = 0; // when the previous step ended
  for (const step_time& s : worker.steps) {
    paused += s.paused;
    const std::int64_t end = s.end - worker.region_begin - paused;
    if (end > length) return counted + static_cast<double>(length - previous) / static_cast<double>(end - previous);
    ++counted;
    previous = end;
  }
  return counted;
}

// Returns the counted steps of each worker. With asynchronous workers, all regions end with that of the first to
// finish.
std::vector<double> counted_steps(const records_view& workers, bool asynchronous) {
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
  for (const rank_record* w : workers) shortest = std::min(shortest, region_length(*w));
  std::vector<double> counted;
  for (const rank_record* w : workers)
    counted.push_back(asynchronous ? steps_within(*w, shortest) : static_cast<double>(w->steps.size()));
  return counted;
}

// Returns the durations of the worker's first `counted` steps, in seconds; with `computing`, without the time blocked.
std::vector<double> durations(const rank_record& worker, std::size_t counted, bool computing) {
  std::vector<double> all;
  for (std::size_t s = 0; s < counted; ++s) {
    const step_time& t = worker.steps[s];
    all.push_back(seconds(t.end - t.begin - (computing ? t.blocked : 0)));
  }
  return all;
}

void add_paces(run_figures& f, const records_view& workers, const std::vector<std::size_t>& completed_by,
               const std::vector<last_worker>& last) {
  for (std::size_t w = 0; w < workers.size(); ++w) {
    const auto compute = median(durations(*workers[w], completed_by[w], true));
    if (!compute) continue;
    worker_pace pace{workers[w]->rank, workers[w]->host, *compute, std::nullopt};
    if (!last.empty())
      pace.last =
          static_cast<double>(std::ranges::count(last, w, &last_worker::worker)) / static_cast<double>(last.size());
    f.paces.push_back(std::move(pace));
  }
}

void add_throughput(run_figures& f, const records_view& workers, bool asynchronous,
                    const std::vector<std::size_t>& completed_by, const std::vector<timed_host>& hosts) {
  const std::optional<std::uint64_t> bound = asynchronous ? workers.front()->bound : 0;
  for (std::size_t w = 0; w < workers.size(); ++w)
    f.step_seconds.push_back(durations(*workers[w], completed_by[w], false));
  std::vector<double> all_steps;
  for (const std::vector<double>& of_worker : f.step_seconds)
    all_steps.insert(all_steps.end(), of_worker.begin(), of_worker.end());
  const common_clock clock(hosts, workers, median(all_steps).value_or(0));
  f.clocks = {clock.offsets(), clock.uncertainty_seconds(), bound ? clock.reason() : ""};
  const std::vector<last_worker> last =
      bound && clock.reason().empty() ? last_workers(workers, clock) : std::vector<last_worker>{};
  add_paces(f, workers, completed_by, last);
  auto [shortest, longest] = std::minmax_element(
      workers.begin(), workers.end(), [](auto* a, auto* b) { return region_length(*a) < region_length(*b); });
  const std::int64_t length = region_length(asynchronous ? **shortest : **longest);
  f.region_seconds = seconds(length);
  double samples = 0, steps = 0, units = 0;
  bool units_known = true;
  std::size_t with_steps = 0;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const rank_record* const w = workers[i];
    const std::size_t completed = completed_by[i];
    const double counted = f.counted_steps[i];
    const double samples_a_step = static_cast<double>(w->samples) / static_cast<double>(w->steps.size());
    samples += samples_a_step * counted;
    steps += counted;
    units_known = units_known && w->unit_counts.size() == w->steps.size();
    for (std::size_t s = 0; units_known && static_cast<double>(s) < counted; ++s)
      units += static_cast<double>(w->unit_counts[s]) * std::min(counted - static_cast<double>(s), 1.0);
    f.samples_per_worker_step += samples_a_step / static_cast<double>(workers.size());
    if (completed == 0) continue; // an asynchronous worker that was too slow to finish any step
    ++with_steps;
    time_parts mine = partition(*w, completed, last_compute_end(*w, last, clock), bound.value_or(0));
    if (!f.clocks.reason.empty()) mine.blocked = std::exchange(mine.exposed_communication, 0);
    for (const auto& [name, part] : time_part_names) f.time.*part += mine.*part;
  }
  if (with_steps == 0) throw failure(exit_code::run, "no step ended within the timed region");
  for (const auto& [name, part] : time_part_names) f.time.*part /= static_cast<double>(with_steps);
  f.samples = samples;
  f.samples_per_second = samples / f.region_seconds;
  if (units_known) {
    f.units = units;
    f.units_per_second = units / f.region_seconds;
  }
  f.batches_per_second = steps / static_cast<double>(workers.size()) / f.region_seconds;
}

void add_traffic(run_figures& f, const std::vector<rank_record>& records, double steps) {
  auto mean_over = [&](auto chosen, auto value) -> std::optional<double> {
    double sum = 0, count = 0;
    for (const rank_record& r : records) {
      if (!chosen(r)) continue;
      sum += value(r);
      ++count;
    }
    if (count == 0) return std::nullopt;
    return sum / count / steps;
  };
  const auto is_worker = [](const rank_record& r) { return r.worker >= 0; };
  const auto is_server = [](const rank_record& r) { return r.server >= 0; };
  const auto only_server = [](const rank_record& r) { return r.server >= 0 && r.worker < 0; };
  const auto sent = [](const rank_record& r) { return static_cast<double>(r.bytes_sent); };
  const auto received = [](const rank_record& r) { return static_cast<double>(r.bytes_received); };
  f.worker_sent_bytes = mean_over(is_worker, sent);
  f.worker_received_bytes = mean_over(is_worker, received);
  f.server_sent_bytes = mean_over(only_server, sent);
  f.server_received_bytes = mean_over(only_server, received);
  f.communication_seconds = *mean_over(is_worker, [](const rank_record& r) { return seconds(r.communication_ns); });
  f.server_update_seconds = mean_over(is_server, [](const rank_record& r) { return seconds(r.server_update_ns); });
}

// `counted` holds the counted steps of each worker, by its number.
void add_strategy(run_figures& f, const std::vector<rank_record>& records, double steps,
                  const std::vector<std::size_t>& counted) {
  std::map<std::string, double> reporting;
  for (const rank_record& r : records) {
    for (const auto& [name, seen] : r.strategy.counts)
      for (const auto& [value, times] : seen) f.strategy.counts[name][value] += times;
    for (const auto& [name, seen] : r.strategy.by_step)
      for (const auto& s : seen)
        if (s.step >= r.first_step && s.worker < counted.size() && s.step - r.first_step < counted[s.worker])
          f.strategy.counts[name][s.value] += s.times;
    for (const auto& [name, sum] : r.strategy.sums) {
      f.strategy.sums[name] += sum;
      ++reporting[name];
    }
  }
  for (auto& [name, sum] : f.strategy.sums) sum /= reporting[name] * steps;
}

// Returns when the last worker ended each timed step, relative to that worker's begin of the region, without
// evaluations.
std::vector<double> ends_of_steps(const records_view& workers) {
  std::vector<double> ends(workers.front()->steps.size());
  for (const rank_record* w : workers) {
    std::int64_t paused = 0;
    for (std::size_t s = 0; s < ends.size(); ++s) {
      paused += w->steps[s].paused;
      ends[s] = std::max(ends[s], seconds(w->steps[s].end - w->region_begin - paused));
    }
  }
  return ends;
}

// Returns the length of the first `steps` warm-up steps, or of all of them, on the slowest worker.
double warm_up_seconds(const records_view& workers, std::size_t steps) {
  double longest = 0;
  for (const rank_record* w : workers) {
    const auto end = w->warm_up_ns.begin() + static_cast<std::ptrdiff_t>(std::min(steps, w->warm_up_ns.size()));
    longest = std::max(longest, 1e-9 * std::accumulate(w->warm_up_ns.begin(), end, 0.0));
  }
  return longest;
}

// The loss of a step is the mean over the samples of all workers that recorded it. A step that counted nothing has no
// loss.
void add_losses(run_figures& f, const records_view& workers) {
  const std::vector<double> ends = ends_of_steps(workers);
  const auto second_of = [&, first = workers.front()](std::size_t step) -> std::optional<double> {
    const std::size_t warmup = std::max(first->loss_counts.size(), ends.size()) - ends.size();
    if (step < warmup || step - warmup >= ends.size()) return std::nullopt;
    return ends[step - warmup];
  };
  std::size_t steps = 0;
  for (const rank_record* w : workers) steps = std::max(steps, std::min(w->loss_sums.size(), w->loss_counts.size()));
  for (std::size_t s = 0; s < steps; ++s) {
    double sum = 0, count = 0;
    for (const rank_record* w : workers) {
      if (s >= w->loss_sums.size() || s >= w->loss_counts.size()) continue;
      sum += w->loss_sums[s];
      count += static_cast<double>(w->loss_counts[s]);
    }
    if (count == 0) continue;
    f.losses.push_back(sum / count);
    f.loss_steps.push_back(s);
    f.loss_seconds.push_back(second_of(s));
    f.loss_finite = f.loss_finite && std::isfinite(sum);
  }
  for (const auto& [done, value] : f.metric_curve) {
    f.metric_seconds.push_back(done ? second_of(done - 1) : std::nullopt);
    f.metric_training_seconds.push_back(warm_up_seconds(workers, done) + f.metric_seconds.back().value_or(0));
  }
}

void add_state(run_figures& f, const std::vector<rank_record>& records, const records_view& workers) {
  const rank_record& first = *workers.front();
  f.kernels = first.kernels;
  f.layout = first.layout;
  f.isa = first.isa;
  f.weights_hash = first.weights_hash;
  f.must_agree = first.agrees;
  f.counts_tokens = first.counts_tokens;
  if (std::ranges::none_of(workers, [](auto* w) { return w->weights_hash.empty(); }))
    f.replicas_identical = std::ranges::all_of(workers, [&](auto* w) { return w->weights_hash == first.weights_hash; });
  const auto any = [&](bool rank_record::*member) { return std::ranges::any_of(records, std::identity{}, member); };
  if (any(&rank_record::weights_should_move)) f.weights_moved = any(&rank_record::weights_moved);
  records_view by_rank;
  for (const rank_record& r : records) by_rank.push_back(&r);
  std::ranges::sort(by_rank, {}, &rank_record::rank);
  // A launcher can give REGATTA_ISA to some processes of a host, which its agent does not see.
  const auto other = std::ranges::find_if(by_rank, [&](const rank_record* r) { return r->isa != first.isa; });
  if (other != by_rank.end())
    f.warnings.push_back(fmt::format("ranks use different instruction sets: {} in worker 0, and {} in rank {}",
                                     first.isa, (*other)->isa, (*other)->rank));
  for (const rank_record* r : by_rank) {
    f.places.push_back({r->host, r->numa_node});
    f.transport_counters.push_back(r->transport_counters);
    f.memory_peak_bytes.push_back(r->memory_peak_bytes);
    f.cpu_seconds.push_back(r->cpu_seconds);
    f.given_bytes += r->given_bytes;
    f.gpus.push_back(r->gpu);
    f.drain_seconds = std::max(f.drain_seconds, seconds(r->drain_ns));
    f.evaluation_seconds = std::max(f.evaluation_seconds, seconds(r->evaluation_ns));
    if (r->steal) f.steal = std::max(f.steal.value_or(0), *r->steal);
    if (r->run_queue) f.run_queue = std::max(f.run_queue.value_or(0), *r->run_queue);
    if (r->metric_value && !f.metric_value) {
      f.metric = r->metric;
      f.metric_value = r->metric_value;
      f.metric_curve = r->metric_curve;
    }
    f.skipped_records += r->skipped_records;
    for (const std::string& w : r->warnings)
      if (std::find(f.warnings.begin(), f.warnings.end(), w) == f.warnings.end()) f.warnings.push_back(w);
  }
}

} // namespace

run_figures figures_of(const std::vector<rank_record>& records, bool asynchronous,
                       const std::vector<timed_host>& hosts) {
  const records_view workers = workers_of(records);
  run_figures f;
  f.counted_steps = counted_steps(workers, asynchronous);
  const std::vector<std::size_t> completed(f.counted_steps.begin(), f.counted_steps.end()); // rounds down
  add_throughput(f, workers, asynchronous, completed, hosts);
  add_traffic(f, records, static_cast<double>(workers.front()->steps.size()));
  add_strategy(f, records, static_cast<double>(workers.front()->steps.size()), completed);
  add_state(f, records, workers);
  add_losses(f, workers);
  return f;
}

gpu_figures over_runs(const std::vector<gpu_figures>& runs) {
  gpu_figures g = runs.at(0);
  for (const gpu_member& m : gpu_members) {
    std::vector<double> values;
    for (const gpu_figures& r : runs)
      if (const auto& value = r.*m.value) values.push_back(*value);
    if (values.empty()) continue;
    g.*m.value = m.highest ? std::optional(*std::ranges::max_element(values)) : median(values);
  }
  return g;
}

} // namespace regatta
