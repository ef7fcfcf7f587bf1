// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/experiment.hpp"
#include "measure/summary.hpp"
#include "registry/ask.hpp"
#include "registry/registry.hpp"

#include <cstdint>

namespace regatta {

// A model of this case, before anything runs: its shapes, and the work of a step.
struct model_facts {
  std::string unit = "samples";
  bool batch_statistics = false;      // it has running statistics
  std::uint64_t parameters = 0;       // by shape, tables included
  std::uint64_t weight_bytes = 0;     // of the dense tensors in memory, padding included
  std::uint64_t table_parameters = 0; // of the sparse tables, by shape
  std::string table;                  // names of its sparse tables; empty: it has none
  std::uint64_t table_bytes = 0;      // of the rows that a run can touch at most
  std::uint64_t window_bytes = 0;     // of what one step sees of the tables
  std::uint64_t step_row_bytes = 0;   // of the rows that a worker touches in a step at most
  std::uint64_t activation_bytes = 0; // of one worker; 0: unknown
  double flops_per_sample = 0;        // 0: unknown
  // Samples that a worker trains on in one step. With train.batch_unit = "tokens": as many samples as have, padding
  // included, so many positions for tokens; whole micro-batches.
  std::uint64_t batch_per_worker = 0;
};

// Makes the model and ends it: for a child of ask(). `plugins` loads what find() returns. Throws failure (usage) where
// the batch does not divide, or with the plugin's text. [main]
model_facts facts_of(const registry& plugins, const case_config& c, const stage_function& stage);

// Throws failure (usage) where the model has sparse tables and strategy and transport do not exchange their rows.
void check_tables(const case_config& c, const model_facts& m, bool exchanges_rows);

// What all ranks of the case together take: weights, gradients, the optimiser's state, activations, the strategy's
// copies. An estimate from above for the strategies that are built in.
std::uint64_t estimated_bytes(const case_config& c, const model_facts& m, std::uint64_t servers);

} // namespace regatta
