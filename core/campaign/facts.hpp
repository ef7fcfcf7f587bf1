// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/experiment.hpp"
#include "measure/summary.hpp"
#include "registry/ask.hpp"
#include "registry/registry.hpp"

#include <cstdint>

namespace regatta {

// Facts about the model of a case that are known before a run: shapes, and the work of a step.
struct model_facts {
  std::string unit = "samples";       // the model's name of samples: "images"
  bool batch_statistics = false;      // the model has running statistics
  std::uint64_t parameters = 0;       // without padding, sparse tables included, state not
  std::uint64_t weight_bytes = 0;     // of dense tensors in memory, padding included
  std::uint64_t table_parameters = 0; // those of sparse tables
  std::string table;                  // names of sparse tables; empty: none
  std::uint64_t table_bytes = 0;      // of the rows that a run can touch, at most
  std::uint64_t window_bytes = 0;     // of one worker's windows of one step, at most
  std::uint64_t step_row_bytes = 0;   // of the rows that a worker touches in one step, at most
  std::uint64_t activation_bytes = 0; // of one worker for one micro-batch; 0: unknown
  double flops_per_sample = 0;        // FLOP of the forward and the backward pass; 0: unknown
  // Samples of one worker in one step. If train.batch counts tokens: the worker's tokens divided by the token positions
  // of a sample, padding included, rounded down to whole micro-batches.
  std::uint64_t batch_per_worker = 0;
};

// Creates the model, reads its facts and destroys it. Runs plugin code: call it in a child of ask(), with its `stage`
// and with registry::loading(). Throws one failure with all reasons found: usage if the batch cannot be divided or the
// data does not fit the model's inputs, else as the plugin's status says. [main]
model_facts facts_of(const registry& plugins, const case_config& c, const stage_function& stage);

// Throws failure (usage) if the model has sparse tables and `exchanges_rows` is false: their rows are not exchanged
// (prepared_run::exchanges_rows).
void check_tables(const case_config& c, const model_facts& m, bool exchanges_rows);

// Returns the memory of all ranks of the case together, in bytes: weights, gradients, optimizer state, activations,
// sparse tables, records of steps, and copies of the strategy. An upper estimate for built-in strategies. `servers` is
// the number of servers that run (case_answers::servers).
std::uint64_t estimated_bytes(const case_config& c, const model_facts& m, std::uint64_t servers);

} // namespace regatta
