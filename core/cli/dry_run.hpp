// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "campaign/plugin_facts.hpp"
#include "experiment/experiment.hpp"
#include "report/render.hpp"
#include "simulate/machine_file.hpp"

namespace regatta {

// Runs `regatta run --dry-run`: prints the cases with estimated time and memory, or why a case cannot run. Returns the
// exit code that a run would have for the same reason: that of the failure if the experiment's only case cannot run; of
// a sweep, 3 if a plugin fails, else 77 if no case can run; else 0. Steps are simulated with `simulated`; null: they
// are estimated by formulas. Requires a `form` other than latex. [main]
int dry_run(plugin_facts_cache& facts, const experiment& e, format form, const machine_file* simulated);

} // namespace regatta
