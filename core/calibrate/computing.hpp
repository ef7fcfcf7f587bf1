// SPDX-License-Identifier: Apache-2.0
//
// How long one worker computes, and how much longer beside others.
#pragma once

#include "calibrate/measured_run.hpp"
#include "rank/model.hpp"
#include "simulate/machine_file.hpp"
#include "simulate/simulated_run.hpp"

#include <cstdint>
#include <vector>

namespace regatta {

constexpr std::int64_t calibration_traced_steps = 20;

// [main] Adds the times of a worker's step. `alone`: runs of one worker, of which the first has a trace; processes
// differ by some percent, perhaps by where their memory lies, so the medians over the runs are taken. Throws failure
// (run) if the trace lacks steps or hooks.
void add_computing(machine_file& m, const std::vector<measured_run>& alone, const plugin_facts& facts,
                   const std::vector<simulated_tensor>& tensors, const simulated_tables& tables);

// [main] Measures how much slower two or more workers compute side by side, and update their weights at the same time,
// up to m.cores: each number of workers three times, each after a worker alone. `alone` is the case of one worker.
void add_contention(machine_file& m, const measuring& by, const case_config& alone);

} // namespace regatta
