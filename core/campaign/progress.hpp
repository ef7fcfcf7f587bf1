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
  std::string label;                      // "allreduce shm 2 workers"
  std::string phase;                   // "baseline", "baseline-again", "contention", "timing kernels"; empty: the case
  std::size_t repeat = 1, repeats = 1; // repeat counts from 1; repeats is 0: as many as measure.precision needs
  std::uint64_t step = 0, steps = 0;   // steps is 0: unknown, or the run has not begun; the line then shows no step
  std::optional<double> half_width;    // relative, the largest of the cases that run, with measure.precision
  std::optional<double> samples_per_second, seconds_left; // seconds_left: of the campaign, with
                                                          // measure.precision at most; std::nullopt: not shown
};

} // namespace regatta
