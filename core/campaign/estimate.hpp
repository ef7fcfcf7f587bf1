// SPDX-License-Identifier: Apache-2.0
//
// How long a campaign may take, before anything runs: a small model of a step, with the speed of this machine measured
// for a moment. docs/experiments.md has the formulas, and estimates beside times that were seen.
#pragma once

#include "campaign/answers.hpp"
#include "campaign/prepare.hpp"
#include "config/experiment.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace regatta {

struct machine_speed {
  double flops = 0; // of one core that does nothing but multiply and add, in FLOP/s
  double bytes = 0; // that one core reads and writes in memory, a second
  double cores = 1; // that may be used
};
// Takes some tens of milliseconds. [main]
machine_speed measure_machine();
double measure_flops();

struct time_estimate {
  double seconds = 0;     // on a machine that does nothing else
  double cpu_seconds = 0; // of all processes together
  time_estimate& operator+=(const time_estimate& o) {
    seconds += o.seconds;
    cpu_seconds += o.cpu_seconds;
    return *this;
  }
};

// Of one run of the case. `run` is what prepare() made of it.
time_estimate estimate_run(const case_config& c, const case_answers& said, const prepared_run& run,
                           const registry& plugins, const machine_speed& machine);

// Of one process that times kernels for the case.
time_estimate estimate_timing(const case_config& c, const case_answers& said, const machine_speed& machine);

// One case of an experiment, or why it cannot run.
struct case_estimate {
  std::size_t ranks = 0;
  time_estimate time; // all repeats, without what it shares with others
  std::uint64_t memory = 0;
  bool flops_known = false; // else the model's own work is not in `time`
  std::string refused;      // empty: it runs
  int code = 0;             // exit code of `refused`
};

// A run that several cases share: a baseline, a control under `none`, or the timing of kernels.
struct shared_estimate {
  std::string what; // "baseline", "control", "kernel timing"
  std::int64_t workers = 1;
  std::uint64_t runs = 1;
  time_estimate time;             // of all runs
  std::vector<std::size_t> cases; // that share it, from 0
};

struct campaign_estimate {
  std::vector<case_estimate> cases;
  std::vector<shared_estimate> shared;
  time_estimate total;
};

// Asks the plugins about all cases. Never throws for what is wrong with a case. [main]
campaign_estimate estimate(plugin_answers& answers, const experiment& e, const machine_speed& machine);

} // namespace regatta
