// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiment/experiment.hpp"
#include "measure/case_facts.hpp"
#include "registry/registry.hpp"
#include "registry/run_in_child.hpp"

#include <cstdint>

namespace regatta {

// [main] Creates the model of `c`, reads its facts, opens the data to check it against the model's inputs, and destroys
// the model. Runs plugin code: call it in a child of run_in_child(), with that child's `stage`; `plugins` is a result
// of registry::loading(). Throws one failure with all reasons found (findings::raise()):
//  - usage: the batch cannot be divided among workers and micro-batches, or counts tokens that the model does not take;
//    the data is missing or does not fit; an executor in train.executor does not exist or is for another device; or no
//    executor is for a train.device other than cpu, cuda
//  - skipped: there is no executor for cpu or cuda, or none can compile the model's graph
//  - plugin: the model's description is invalid
//  - else by the status that the plugin returned (check() in plugin_host.hpp)
model_facts model_facts_of(const registry& plugins, const case_config& c, const stage_function& stage);

// [any] Throws failure (usage) if the model has sparse tables and `exchanges_rows` (prepared_run::exchanges_rows) is
// false: the strategy does not exchange their rows, or the transport cannot carry them. `m` are the facts of `c`.
void check_tables(const case_config& c, const model_facts& m, bool exchanges_rows);

// [any] Returns an estimate of the memory of all ranks of the case together, in bytes, on host and device: weights,
// gradients, optimizer state, activations, sparse tables and their windows, sums of servers, records of steps, weights
// that shm maps, and 48 MiB a process. Leaves out data sets and the buffers that a strategy allocates for itself (dgc:
// twice the weights). `servers` is the number of servers that run (plugin_facts::servers).
std::uint64_t estimated_bytes(const case_config& c, const model_facts& m, std::uint64_t servers);

} // namespace regatta
