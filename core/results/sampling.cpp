// SPDX-License-Identifier: Apache-2.0
#include "results/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "results/efficiency.hpp"
#include "results/inference.hpp"
#include "results/statistics.hpp"

namespace regatta {
namespace {

constexpr std::size_t batches = 10;
constexpr std::int64_t longest = 64;
// The median of n normal samples has sqrt(pi / 2) times the standard error of their mean.
constexpr double half_width_of_median = 1.95996 * 1.25331;

using case_state = campaign_records::case_state;

// Returns the mean over a case's repeats of the variance in the steps of the runs that its figure consists of. The
// workers of a run go through their steps together, so the first one stands for all.
double variance_in_steps(const case_state& c) {
  double sum = 0;
  std::size_t complete = 0;
  for (const auto& [number, repeat] : c.repeats) {
    if (!repeat.complete()) continue;
    ++complete;
    for (const run_figures* run : {&repeat.figures.run, repeat.figures.baseline ? &*repeat.figures.baseline : nullptr})
      if (run && !run->step_seconds.empty()) sum += variance_of_steps(run->step_seconds.front());
  }
  return complete ? sum / static_cast<double>(complete) : 0;
}

// Returns the timed seconds of the last round of a group's runs.
double region_of_round(const experiment& e, const campaign_records& records, const std::vector<std::size_t>& group) {
  double seconds = 0;
  std::set<std::int64_t> controlled; // numbers of workers: cases share the contention control
  bool baseline = false;             // and the baseline
  for (const std::size_t index : group) {
    const case_state& c = records.of_case(index);
    if (c.repeats.empty()) continue;
    const repeat_figures& f = c.repeats.rbegin()->second.figures;
    seconds += f.run.region_seconds;
    if (f.contention && controlled.insert(e.cases[index].cluster.workers).second)
      seconds += f.contention->region_seconds;
    if (!f.baseline || !f.baseline_again || std::exchange(baseline, true)) continue;
    seconds += f.baseline->region_seconds + f.baseline_again->region_seconds;
  }
  return seconds;
}

// Returns the factor by which the runs of a group are to be longer, after the first rounds with the configured length.
// 1 if the rounds that it takes do not fit into the time that is left, and if a case of the group has an evaluation,
// whose figures depend on the number of steps, or so many steps that `longest` times as many are more than can be kept.
std::int64_t longer_runs(const experiment& e, const campaign_records& records, const std::vector<std::size_t>& group,
                         const group_time& time, std::size_t rounds) {
  std::vector<variance_parts> figures;
  for (const std::size_t index : group) {
    const case_config& c = e.cases[index];
    if (!c.data.evaluation_path.empty() || c.measure.steps * longest > most_measured_steps) return 1;
    const auto parts =
        split_variance(compared_figure(c, records.of_case(index)), variance_in_steps(records.of_case(index)));
    if (!parts) return 1;
    figures.push_back(*parts);
  }
  const double wanted = e.cases[group.front()].measure.precision, region = region_of_round(e, records, group);
  const round_cost cost{rounds, std::max(0.0, time.last_round - region), region};
  const std::int64_t length = best_length(figures, wanted, cost);
  const double least = fewest_rounds * (cost.fixed + static_cast<double>(length) * cost.region);
  return time.spent + least > time.share ? 1 : length;
}

} // namespace

std::vector<double> compared_figure(const case_config& config, const case_state& c) {
  std::vector<double> values;
  for (const auto& [number, repeat] : c.repeats)
    if (repeat.complete())
      values.push_back(repeat.figures.baseline ? efficiency_of(config, repeat.figures)
                                               : repeat.figures.run.samples_per_second);
  return values;
}

std::optional<double> relative_half_width(const std::vector<double>& values) {
  const auto i = median_interval(values);
  if (!i || i->coverage < usual_confidence || !(i->estimate > 0)) return std::nullopt;
  return (i->high - i->low) / (2 * i->estimate);
}

double variance_of_steps(const std::vector<double>& step_seconds) {
  if (step_seconds.size() < 2 * batches) return 0;
  std::vector<double> logs;
  for (std::size_t b = 0; b < batches; ++b) {
    const auto from = step_seconds.begin() + static_cast<std::ptrdiff_t>(b * step_seconds.size() / batches),
               to = step_seconds.begin() + static_cast<std::ptrdiff_t>((b + 1) * step_seconds.size() / batches);
    logs.push_back(std::log(std::accumulate(from, to, 0.0) / static_cast<double>(to - from)));
  }
  const double spread = deviation(logs).value_or(0);
  return spread * spread / static_cast<double>(batches);
}

std::optional<variance_parts> split_variance(const std::vector<double>& figures, double steps) {
  std::vector<double> logs;
  for (const double r : figures) logs.push_back(std::log(r));
  const auto spread = deviation(logs);
  if (!spread) return std::nullopt;
  const double all = *spread * *spread, of_steps = std::min(steps, all);
  return variance_parts{all - of_steps, of_steps};
}

std::size_t rounds_needed(const variance_parts& v, double wanted, double length) {
  const double n = std::pow(half_width_of_median / wanted, 2) * (v.repeats + v.steps / length);
  return static_cast<std::size_t>(
      std::clamp(std::ceil(n), static_cast<double>(fewest_rounds), static_cast<double>(most_rounds)));
}

std::int64_t best_length(const std::vector<variance_parts>& figures, double wanted, const round_cost& cost) {
  std::int64_t best = 1;
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t length = 1; length <= longest; length *= 2) {
    const auto factor = static_cast<double>(length);
    std::size_t rounds = 0;
    for (const variance_parts& v : figures) rounds = std::max(rounds, rounds_needed(v, wanted, factor));
    if (length == 1) rounds -= std::min(rounds, cost.done);
    const double seconds = static_cast<double>(rounds) * (cost.fixed + factor * cost.region);
    if (seconds < least) best = length;
    least = std::min(least, seconds);
  }
  return best;
}

nlohmann::json sampling_record(const experiment& e, std::size_t index, std::int64_t length, const std::string& ended) {
  return {{"kind", "sampling"},
          {"index", index},
          {"case", swept_values(e.cases.at(index))},
          {"length", length},
          {"ended", ended}};
}

next_round next_sampled_round(const experiment& e, const campaign_records& records,
                              const std::vector<std::size_t>& group, const group_time& time) {
  next_round next;
  next.length = records.of_case(group.front()).length;
  std::uint64_t rounds = std::numeric_limits<std::uint64_t>::max(); // that all cases have
  bool all_alike = true;
  for (const std::size_t index : group) {
    std::uint64_t n = 0;
    while (records.has(index, n)) ++n;
    all_alike = all_alike && (rounds == std::numeric_limits<std::uint64_t>::max() || n == rounds);
    rounds = std::min(rounds, n);
  }
  next.repeat = rounds;
  if (!all_alike) return next; // a round that was interrupted: its other runs come first

  const auto record = [&](std::int64_t length, const char* ended) {
    for (const std::size_t index : group) next.records.push_back(sampling_record(e, index, length, ended));
  };
  const auto end = [&](const char* why) {
    record(next.length, why);
    next.repeat.reset();
  };
  bool known = rounds >= fewest_rounds;
  for (const std::size_t index : group) {
    const auto width = relative_half_width(compared_figure(e.cases[index], records.of_case(index)));
    known = known && width;
    if (width) next.half_width = std::max(next.half_width.value_or(0), *width);
  }
  if (!known) next.half_width.reset();
  if (known && *next.half_width <= e.cases[group.front()].measure.precision)
    end("precise");
  else if (rounds >= most_rounds)
    end("limit");
  else if (rounds > 0 && time.spent + time.last_round > time.share)
    end("budget");
  else if (rounds == fewest_rounds && next.length == 1 && time.last_round > 0)
    if (const std::int64_t length = longer_runs(e, records, group, time, rounds); length > 1) {
      record(length, "");
      next.length = length;
      next.repeat = 0;
      next.half_width.reset();
    }
  return next;
}

} // namespace regatta
