// SPDX-License-Identifier: Apache-2.0
//
// The simulated clusters of the tests of strategies, and runs on them.
#pragma once

#include "check/harness/suite.hpp"
#include "simulation/simulation.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace regatta::conformance {

// Returns what the strategy under test plans for a cluster. Throws failure if it refuses the cluster or the optimizer.
rg_plan plan_for(const subject& s, std::uint32_t workers, std::uint32_t servers, const optimizer_config& with = {});
bool needs_servers(const subject& s);

inline bool lossy(const rg_plan& p) {
  return p.flags & RG_PLAN_LOSSY;
}
// Returns true if every step of all workers, also of the warm-up before rg_plan.steady_from, uses the sum of their
// gradients, so that one worker's serial run is the reference.
inline bool equals_serial_run(const rg_plan& p) {
  return (p.flags & RG_PLAN_SYNCHRONOUS) && !lossy(p);
}
// Returns `steps`, rounded up to whole periods of the strategy.
inline std::uint64_t whole_periods(const rg_plan& p, std::uint64_t steps) {
  return (steps + p.period - 1) / p.period * p.period;
}
// Returns how many steps a test simulates before it looks at the training: rg_plan.steady_from, or less, with a remark,
// if that takes too long. It is never a reason to skip a test.
std::uint64_t steps_until_steady(const rg_plan& p);

// Returns a run of a few steps, with vectors, matrices and weights of a convolution, most of them no multiple of a
// cache line. There are servers only if the strategy needs them.
simulation_setup setup_for(const subject& s, std::uint32_t workers, std::uint32_t servers);
// Gives the run's tensors these shapes.
void set_shapes(simulation_setup& x, const std::vector<std::vector<std::int64_t>>& all);
// Calls `f` with a setup for each small cluster and each kind of network.
void for_all(const subject& s, const std::function<void(simulation_setup&)>& f);

// Returns how messages name the run: "3 workers, 2 servers, eager, adds: ".
std::string title(const simulation_setup& x);
// Simulates the run. Throws failed if it fails, or leaves operations pending.
simulation_result run_simulation(const subject& s, const simulation_setup& x);

// Returns true if the values are equal up to the rounding of fp32 in a few steps with gradients of about 1.
bool agree(float value, double expected);

// The tests of what plan() and talks() declare.
std::vector<test> declaration_tests();

} // namespace regatta::conformance
