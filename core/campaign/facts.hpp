// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/experiment.hpp"
#include "measure/summary.hpp"
#include "registry/ask.hpp"
#include "registry/registry.hpp"

#include <cstdint>

namespace regatta {

// Facts about the model of a case, before anything runs: shapes, and the work of a step.
struct model_facts {
  std::string unit = "samples";
  bool batch_statistics = false;      // the model has running statistics
  std::uint64_t parameters = 0;       // by shape, sparse tables included
  std::uint64_t weight_bytes = 0;     // of dense tensors in memory, padding included
  std::uint64_t table_parameters = 0; // of sparse tables, by shape
  std::string table;                  // names of sparse tables; empty: none
  std::uint64_t table_bytes = 0;      // of the rows that a run can touch, at most
  std::uint64_t window_bytes = 0;     // of the windows of one step
  std::uint64_t step_row_bytes = 0;   // of the rows that a worker touches in one step, at most
  std::uint64_t activation_bytes = 0; // of one worker; 0: unknown
  double flops_per_sample = 0;        // 0: unknown
  // Samples of one worker in one step. With train.batch_unit = "tokens": as many samples as have that many token
  // positions, padding included, rounded down to whole micro-batches.
  std::uint64_t batch_per_worker = 0;
};

// Creates and destroys the model; for a child of ask(). Requires that plugins.find() loads. Throws failure (usage) if
// the batch is not divisible, or failure with the plugin's text. [main]
model_facts facts_of(const registry& plugins, const case_config& c, const stage_function& stage);

// Throws failure (usage) if the model has sparse tables and the strategy does not exchange their rows over the
// transport.
void check_tables(const case_config& c, const model_facts& m, bool exchanges_rows);

// Returns the memory of all ranks of the case together, in bytes: weights, gradients, optimizer state, activations, and
// copies of the strategy. An upper estimate for built-in strategies.
std::uint64_t estimated_bytes(const case_config& c, const model_facts& m, std::uint64_t servers);

} // namespace regatta
