// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "campaign/plugin_facts.hpp"
#include "campaign/progress.hpp"
#include "experiment/experiment.hpp"
#include "launch/interruption.hpp"
#include "measure/records.hpp"
#include "simulate/machine_file.hpp"

#include <cstddef>
#include <functional>
#include <string>

namespace regatta {

// Called in simulate_cases() on its thread. Each may be empty.
struct simulation_hooks {
  std::function<void(const regatta::progress&)> progress;
  std::function<void(const nlohmann::json& record)> record; // it has been added to the records
  // Returns the file for the operations of a case in GOAL (simulate/goal_file.hpp), written in its first repeat.
  std::function<std::string(std::size_t index)> goal;
  // Returns the file for the trace of a run (docs/trace.md), such as "case-1-repeat-2-baseline".
  std::function<std::string(const std::string& run)> trace;
};

// Simulates the repeats of every case that have no record, each with its baseline and its contention control, and adds
// the records that a campaign of real runs adds. At most `jobs` simulations run at once, each in a child process; the
// order of the records does not depend on it. One more begins only if there is enough memory for it and all that run,
// should each need as much as the largest so far. Returns the worst exit code of cases that failed or cannot run on
// this machine (exit_code::skipped), 0 if there are none, or interrupted (130). A case that fails with usage has the
// status "skipped" and no effect on the exit code, unless it is the only case. Does not throw for failures of cases:
// they become records. [main]
int simulate_cases(plugin_facts_cache& answers, const experiment& e, const machine_file& m, std::size_t jobs,
                   campaign_log& records, const simulation_hooks& hooks);

} // namespace regatta
