// SPDX-License-Identifier: Apache-2.0
//
// How many repeats, and how long ones, a wanted precision needs.
//
// The logarithm of a compared ratio (samples/s of a case over those of its baseline) varies between repeats. One part
// of that variance is in the steps of a run and falls with their number; the other is between runs (addresses, thread
// placement, clock rates) and falls only with the number of repeats (Kalibera and Jones, Rigorous benchmarking in
// reasonable time, 2013, section 5). All are [any].
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "experiment/experiment.hpp"
#include "results/campaign_records.hpp"

namespace regatta {

inline constexpr std::size_t fewest_rounds = 6; // the fewest samples whose range covers the median with 95 %
inline constexpr std::size_t most_rounds = 1000;

// Returns the figure that measure.precision is about, of each complete repeat in their order: the efficiency, or
// samples/s for a case that is compared with no baseline.
std::vector<double> compared_figure(const case_config& config, const campaign_records::case_state& c);

// Returns half of the length of median_interval(), relative to the median: 0.02 for "known to 2 %". std::nullopt if the
// interval covers the median with less than usual_confidence, or the median is not positive.
std::optional<double> relative_half_width(const std::vector<double>& values);

// Returns the variance of the logarithm of a run's mean step: 10 consecutive batches of its steps are compared, so that
// a correlation of neighbouring steps counts. 0 for fewer than 20 steps.
double variance_of_steps(const std::vector<double>& step_seconds);

struct variance_parts {
  double repeats = 0, steps = 0; // of the logarithm of one repeat's figure; their sum is its variance
};

// Splits the variance of the logarithms of `figures`. `steps` is the mean over the repeats of the sum of
// variance_of_steps() of all runs that one figure consists of. std::nullopt for fewer than two figures.
std::optional<variance_parts> split_variance(const std::vector<double>& figures, double steps);

// Returns the rounds that runs of `length` times the steps need until the relative half width is `wanted`, from
// fewest_rounds to most_rounds.
std::size_t rounds_needed(const variance_parts& v, double wanted, double length);

// The time that more rounds take, in seconds.
struct round_cost {
  std::size_t done = 0; // rounds that have run, with runs of the configured length
  double fixed = 0;     // of each round: starts, warm-ups and ends of its runs
  double region = 0;    // of each round: the timed regions of its runs, of the configured length
};

// Returns by which power of two, from 1 to 64, to multiply the steps of the runs, so that all `figures` are known to
// `wanted` in the least time. With a factor above 1 the rounds so far are lost, because figures of runs of different
// lengths have different variances. Returns the smallest of several equal ones.
std::int64_t best_length(const std::vector<variance_parts>& figures, double wanted, const round_cost& cost);

// [any] Returns a record "sampling" of the experiment `e` (measure/records.hpp).
nlohmann::json sampling_record(const experiment& e, std::size_t index, std::int64_t length, const std::string& ended);

// Decides for campaign_records::next(), with measure.precision.
next_round next_sampled_round(const experiment& e, const campaign_records& records,
                              const std::vector<std::size_t>& group, const group_time& time);

} // namespace regatta
