// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiment/experiment.hpp"
#include "measure/case_facts.hpp"
#include "registry/registry.hpp"
#include "registry/run_in_child.hpp"

#include <cstdint>

namespace regatta {

// Creates the model, reads its facts and destroys it. Runs plugin code: call it in a child of run_in_child(), with its
// `stage` and with registry::loading(). Throws one failure with all reasons found: usage if the batch cannot be divided
// or the data does not fit the model's inputs, else as the plugin's status says. [main]
model_facts model_facts_of(const registry& plugins, const case_config& c, const stage_function& stage);

// Throws failure (usage) if the model has sparse tables and `exchanges_rows` is false: their rows are not exchanged
// (prepared_run::exchanges_rows).
void check_tables(const case_config& c, const model_facts& m, bool exchanges_rows);

// Returns the memory of all ranks of the case together, in bytes: weights, gradients, optimizer state, activations,
// sparse tables, records of steps, and copies of the strategy. An upper estimate for built-in strategies. `servers` is
// the number of servers that run (plugin_facts::servers).
std::uint64_t estimated_bytes(const case_config& c, const model_facts& m, std::uint64_t servers);

} // namespace regatta
