// SPDX-License-Identifier: Apache-2.0
//
// Estimates how long a campaign takes, before anything runs. The time of a step is simulated if there is a machine
// file; else it is computed from formulas and a short measurement of this machine's speed. docs/experiments.md has the
// formulas, docs/results/dry-run.md estimates beside measured times.
#pragma once

#include "campaign/plugin_facts.hpp"
#include "campaign/prepare.hpp"
#include "experiment/experiment.hpp"
#include "simulate/machine_file.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace regatta {

struct machine_speed {
  double flops = 0; // FLOP/s of one core in fp32 multiply-adds on registers
  double bytes = 0; // bytes a second that one core copies, read and written bytes both counted
  double cores = 1; // cores that this process may use
};
// Measures this machine. Takes some tens of milliseconds. [main]
machine_speed measure_machine();

struct time_estimate {
  double seconds = 0;     // elapsed, on a machine that does nothing else
  double cpu_seconds = 0; // of all processes together; NaN: unknown
  time_estimate& operator+=(const time_estimate& o) {
    seconds += o.seconds;
    cpu_seconds += o.cpu_seconds;
    return *this;
  }
};

// The estimated time of a step.
struct step_estimate {
  double seconds = 0;
  double cpu_seconds = 0; // of all ranks together; NaN: unknown
};
// Returns the time of a step of the case by formulas. `facts` are those of the case, `run` the result of prepare().
// Counts no computing if the model's FLOPs are unknown.
step_estimate estimate_step(const case_config& c, const plugin_facts& facts, const prepared_run& run,
                            const registry& plugins, const machine_speed& machine);

// Estimates one run of the case whose steps take `step`, from the start of its ranks to their end.
time_estimate estimate_run(const case_config& c, const plugin_facts& facts, const prepared_run& run,
                           const step_estimate& step, const machine_speed& machine);

// Estimates the one process that times kernels for the case (prepare_tuning).
time_estimate estimate_timing(const case_config& c, const plugin_facts& facts, const machine_speed& machine);

// The estimate of one case, or the reason why it cannot run.
struct case_estimate {
  std::size_t ranks = 0;    // processes of one run
  time_estimate time;       // all repeats (fewest_repeats()), without shared runs
  std::uint64_t memory = 0; // bytes of all ranks together
  bool flops_known = false; // false: `time` lacks the model's computing, because its FLOPs are unknown
  std::string refused;      // why it cannot run, one or more lines; empty: it can
  int code = 0;             // exit code of `refused`; 0: it can run
};

// A run that several cases share: a baseline, a contention control, or the timing of kernels.
struct shared_estimate {
  std::string what; // "baseline", "control", "kernel timing"
  std::int64_t workers = 1;
  std::uint64_t runs = 1;         // most repeats of these cases, twice that for a baseline; 1 for kernel timing
  time_estimate time;             // all runs together
  std::vector<std::size_t> cases; // the cases that share it, counted from 0
};

// Returns the repeats of a case, with measure.precision the fewest that it can have.
std::uint64_t fewest_repeats(const measure_config& m);

struct campaign_estimate {
  std::vector<case_estimate> cases; // one for each case of the experiment, in order
  std::vector<shared_estimate> shared;
  time_estimate total; // of all cases that can run, and shared runs
};

// Estimates all cases; steps are simulated with the times of `simulated`, unless it is null. Does not throw for a case
// that cannot run, also for lack of memory: its entry says why. [main]
campaign_estimate estimate(plugin_facts_cache& facts, const experiment& e, const machine_speed& machine,
                           const machine_file* simulated);

} // namespace regatta
