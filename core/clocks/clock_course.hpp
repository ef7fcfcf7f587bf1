// SPDX-License-Identifier: Apache-2.0
//
// The clock of one host against that of another one, the reference, over the time of a run. Both are monotonic clocks
// (rg::steady_ns(), in nanoseconds), which have different zero points and drift apart.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// By how much two clocks are assumed to drift apart at most: 100 ppm. Quartz clocks differ by up to about 50 ppm.
inline constexpr double clock_drift = 1e-4;

struct clock_estimate {
  double ahead_ns = 0;       // the host's clock minus the reference
  double uncertainty_ns = 0; // the true value lies within +- this
};

struct clock_course {
  struct point {
    std::int64_t at = 0; // of the host's clock
    clock_estimate is;
  };
  std::vector<point> points; // by `at`, ascending. Empty: the host's clock is the reference

  // [any] Returns the estimate at time `at` of the host's clock: linear between points, that of the nearest point
  // outside. The uncertainty grows with the distance from the points, by the drift.
  clock_estimate at(std::int64_t at) const;
  // [any] Returns the time `at` of the host's clock as time of the reference.
  std::int64_t to_reference(std::int64_t at) const;
};

// A host that took part in a run.
struct timed_host {
  std::string name; // differs from that of all other hosts
  clock_course clock;
};

// [any] Returns {"name", "clock": [[at, ahead_ns, uncertainty_ns], ...]}.
nlohmann::json to_json(const timed_host& host);
// [any] Returns the host that to_json() wrote. Throws failure (run) if a member is missing or has the wrong type.
timed_host timed_host_from_json(const nlohmann::json& j);

} // namespace regatta
