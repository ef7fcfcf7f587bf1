// SPDX-License-Identifier: Apache-2.0
//
// Compares times of workers on several hosts, whose clocks differ.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "clocks/clock_course.hpp"
#include "measure/rank_record.hpp"

namespace regatta {

// The clock of a host in the timed region of its workers, against the clock of the campaign's process.
struct host_offset {
  std::string host;
  clock_estimate begin, end;         // at the begin and the end of the region
  double largest_uncertainty_ns = 0; // within the region
};

// Times of workers are told apart if the clocks of any two hosts are known to this share of the median step.
inline constexpr double largest_clock_share = 0.1;

// The clocks of the hosts of a run's workers. [any]
class common_clock {
public:
  // `hosts` are those of the run's record. `step_seconds` is the median step. All workers have one clock if they are on
  // one host, or if `hosts` is empty (no launcher, or a simulation); else the clocks of hosts that `hosts` does not
  // name are unknown. `workers` must outlive this object.
  common_clock(const std::vector<timed_host>& hosts, const std::vector<const rank_record*>& workers,
               double step_seconds);

  // Why times of workers cannot be compared; empty: they can, or all workers have one clock.
  const std::string& reason() const { return reason_; }
  // Of hosts whose clocks are known; empty for workers with one clock.
  const std::vector<host_offset>& offsets() const { return offsets_; }
  // By how much the difference of times of two hosts may be wrong, in seconds; std::nullopt: one clock, or unknown.
  std::optional<double> uncertainty_seconds() const { return uncertainty_; }

  // Returns by how much the clock of the worker's host is ahead of the common one at time `at` of its own clock, in ns;
  // 0 with one clock. Requires an empty reason().
  std::int64_t ahead(const rank_record& worker, std::int64_t at) const;

private:
  std::map<std::string, clock_course> courses_; // empty for workers with one clock
  std::vector<host_offset> offsets_;
  std::optional<double> uncertainty_;
  std::string reason_;
};

} // namespace regatta
