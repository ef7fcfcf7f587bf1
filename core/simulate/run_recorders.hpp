// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simulate/simulated_run.hpp"
#include "simulator/step_trace.hpp"
#include "trace/recorder.hpp"

#include <deque>
#include <string>
#include <vector>

namespace regatta {

// The trace of a simulated run: the steps of measure.trace that a real run records, too.
class run_recorders {
public:
  // Borrows `r`. Allocates the memory of a recorder for each rank.
  explicit run_recorders(const run_to_simulate& r);
  // For simulation_setup::trace.
  const steps_to_trace* steps() const { return &steps_; }
  // Writes r.trace; call it once, after the simulation. Returns warnings: events were dropped. Throws failure (run) if
  // the file cannot be written.
  std::vector<std::string> write();

private:
  const run_to_simulate& run_;
  steps_to_trace steps_;
  std::deque<trace_recorder> recorders_; // by rank
};

} // namespace regatta
