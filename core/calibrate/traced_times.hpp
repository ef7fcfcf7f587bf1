// SPDX-License-Identifier: Apache-2.0
//
// How long the parts of a training step compute, as the trace of a worker tells.
#pragma once

#include "simulate/machine_file.hpp"
#include "timeline/rank_trace.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace regatta {

// The times of a step's parts in a trace of one worker, in ns.
struct traced_times {
  std::vector<tensor_times> tensors; // medians over the steps, in the order in which gradients become ready
  double after = 0;                  // from the last gradient to the end of the pass; without names: of both passes
  std::size_t steps = 0;
};
// [any] Returns the times between the model's hooks. `names` are those of the dense tensors, in the order in which
// gradients become ready. Throws failure (run) if the trace holds no whole step with all of these hooks.
traced_times times_in_trace(const rank_trace& trace, const std::vector<std::string>& names);

} // namespace regatta
