// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "campaign/plugin_facts.hpp"
#include "experiment/experiment.hpp"
#include "report/render.hpp"

namespace regatta {

// Runs `regatta run --dry-run`: prints the cases with estimated time and memory, or why a case cannot run. Returns 0,
// or, if the experiment's only case cannot run, the exit code of that failure. [main]
int dry_run(plugin_facts_cache& facts, const experiment& e, format form);

} // namespace regatta
