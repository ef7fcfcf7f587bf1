// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace regatta {

// Progress of a campaign.
struct progress {
  std::size_t case_number = 1, cases = 1; // case_number counts from 1
  std::string label;                      // "allreduce, shm, 2 workers"
  std::string phase;                      // "baseline", "baseline-again", "contention", "timing kernels", or in a
                                          // simulation how many runs are simulated; empty: the case
  std::size_t repeat = 1, repeats = 1;    // repeat counts from 1; repeats is 0: as many as measure.precision needs
  // Half of the interval of E or samples/s over its median, the largest of the cases of the current round (those that
  // share a baseline). std::nullopt: not known.
  std::optional<double> half_width;
  // `step`: steps, warm-up included, that the slowest worker has completed of those that have completed one; 0: none
  // has. `steps`: steps of the run, warm-up included; 0: unknown.
  std::uint64_t step = 0, steps = 0;
  std::optional<double> samples_per_second; // of all workers together, since their first steps; nullopt: not shown
  // Until the end of the campaign, with measure.precision at most; std::nullopt: not shown.
  std::optional<double> seconds_left;
};

} // namespace regatta
