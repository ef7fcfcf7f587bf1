// SPDX-License-Identifier: Apache-2.0
//
// The simulated clusters of the tests of strategies, and runs on them.
#pragma once

#include "check/harness/suite.hpp"
#include "simulator/formula_model.hpp"
#include "simulator/simulation.hpp"

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace regatta::conformance {

// Returns what the strategy under test plans for a cluster. Throws failure if it refuses the cluster or the optimizer.
rg_plan plan_for(const subject& s, std::uint32_t workers, std::uint32_t servers, const optimizer_config& with = {},
                 std::uint32_t hosts = 1);
// Returns why plan() rejects the cluster or the optimizer (RG_E_CONFIG); empty: it does not. Throws failure if plan()
// fails otherwise.
std::string why_refused(const subject& s, std::uint32_t workers, std::uint32_t servers,
                        const optimizer_config& with = {}, std::uint32_t hosts = 1);
// Returns why plan() rejects clipping; empty: it does not.
std::string why_not_clipped(const subject& s);
// Returns the number of workers, from 1 to 8, that plan() accepts and that is next to `wanted`: for 3 the first of
// 3, 4, 2, 5, 1, 6, 7, 8. Throws failure as plan_for() if there is none.
std::uint32_t workers_near(const subject& s, std::uint32_t wanted);
// Returns the plan for a small cluster, for its flags: they are the same for all clusters.
rg_plan some_plan(const subject& s);
bool needs_servers(const subject& s);

// Numbers of workers that a test leaves out because plan() rejects them.
class refused_sizes {
public:
  // Returns whether plan() rejects the cluster.
  bool refuses(const subject& s, std::uint32_t workers, std::uint32_t servers);
  void tell() const; // adds a remark with the numbers and the reason, if any was refused
private:
  std::set<std::uint32_t> workers_;
  std::string why_; // of the first one
};
// Returns those of the numbers of workers that plan() accepts, in this order; a remark names the others. If it accepts
// none of them: the one near the first.
std::vector<std::uint32_t> accepted_sizes(const subject& s, const std::vector<std::uint32_t>& workers);

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

// Returns a run of a few steps, with vectors, matrices and weights of convolutions, most of them no multiple of a cache
// line. The first matrix has no gradient in the first steps, and the sum of the workers' gradients of another one is of
// rank 1. There are servers only if the strategy needs them.
simulation_setup setup_for(const subject& s, std::uint32_t workers, std::uint32_t servers);
// Gives the run's tensors these shapes.
void set_shapes(simulation_setup& x, const std::vector<std::vector<std::int64_t>>& all);
// Calls `f` with a setup for each small cluster that plan() accepts, and each combination of network_options::eager and
// network_options::adds.
void for_all(const subject& s, const std::function<void(simulation_setup&)>& f);

// Returns how messages name the run: "3 workers, 2 servers, eager, adds: ".
std::string title(const simulation_setup& x);
// Simulates the run. Throws failed if it fails, or leaves operations pending.
simulation_result run_simulation(const subject& s, const simulation_setup& x);
// As run_simulation(), but operations may be pending at the end: a run with x.stop_at ends before finish(), when some
// may be under way.
simulation_result run_unfinished(const subject& s, const simulation_setup& x);
// Throws skipped if no rank sent a message in the run `r`: each worker trains alone. Throws failed if talks() says
// otherwise.
void need_messages(const subject& s, const simulation_setup& x, const simulation_result& r);

// Throws failed unless all workers have the same weights at the end.
void expect_same_end(const simulation_setup& x, const simulation_result& r);
// Throws failed unless all workers had the same weights in every step, and have them at the end.
void expect_identical(const simulation_setup& x, const simulation_result& r);

// Returns true if the values are equal up to the rounding of fp32 in a few steps with gradients of about 1.
bool agree(float value, double expected);

// The tests of what plan() and talks() declare, of the numbers that a strategy which is not exact trains with, and of
// workers that average their weights.
std::vector<test> declaration_tests();
std::vector<test> training_tests();
std::vector<test> averaging_tests();
// Weights of several buckets, for a strategy that is not synchronous: throws failed if its workers exchange only some,
// skipped if its period is too long for a test, or as need_messages() does.
void expect_all_buckets_exchanged(const subject& s);

} // namespace regatta::conformance
