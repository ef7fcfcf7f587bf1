// SPDX-License-Identifier: Apache-2.0
//
// Facts about a case beyond its configuration. They are known before it runs, and each record of a run keeps them.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace regatta {

// Facts about the model of a case: shapes, and the work of a step.
struct model_facts {
  std::string unit = "samples";       // the model's name of samples: "images"
  std::string executor;               // the id of the one that compiles its graph; empty: it is no graph
  bool batch_statistics = false;      // the model has running statistics: its loss depends on how workers share a batch
  bool sums_over_workers = false;     // the model sums over all workers within a step, such as for those statistics
  std::uint64_t parameters = 0;       // without padding, sparse tables included, state not; 0: unknown
  std::uint64_t weight_bytes = 0;     // of dense tensors in memory, padding included
  std::uint64_t table_parameters = 0; // the part of `parameters` in sparse tables
  std::string table;                  // names of sparse tables; empty: none
  std::uint64_t table_bytes = 0;      // of the rows that a run can touch, at most
  std::uint64_t window_bytes = 0;     // of one worker's windows of one step, at most
  std::uint64_t step_row_bytes = 0;   // of the rows that a worker touches in one step, and their numbers, at most
  std::uint64_t activation_bytes = 0; // of one worker for one micro-batch; 0: unknown
  double flops_per_sample = 0;        // FLOP of the forward and the backward pass; 0: unknown
  // Samples of one worker in one step. If train.batch counts tokens: the worker's tokens divided by the token positions
  // of a sample, padding included, rounded down to a multiple of train.accumulate, the number of micro-batches.
  std::uint64_t batch_per_worker = 0;
};

struct case_facts {
  model_facts model;
  std::uint64_t servers = 0;      // servers that run: 0 if the strategy has none
  bool synchronous = true;        // RG_PLAN_SYNCHRONOUS
  std::uint64_t global_batch = 0; // samples of all workers in one step
  // SHA-256 sums (hex) of the data sets for training and evaluation and of the vocabulary, as far as the case reads
  // them; of large files, of evenly spread parts. Empty: none.
  std::string data;
  std::vector<std::string> warnings;
  bool lossy = false;    // RG_PLAN_LOSSY
  std::string simulated; // identifies the machine file (machine_file::text_hash) of a simulation; empty: measured
};

// [any] List the members for base/json_members.hpp.
template <class F, class Visit>
requires std::same_as<std::remove_const_t<F>, model_facts>
void each_member(F& f, Visit&& visit) {
  visit("unit", f.unit);
  visit("executor", f.executor);
  visit("batch_statistics", f.batch_statistics);
  visit("sums_over_workers", f.sums_over_workers);
  visit("parameters", f.parameters);
  visit("weight_bytes", f.weight_bytes);
  visit("table_parameters", f.table_parameters);
  visit("table", f.table);
  visit("table_bytes", f.table_bytes);
  visit("window_bytes", f.window_bytes);
  visit("step_row_bytes", f.step_row_bytes);
  visit("activation_bytes", f.activation_bytes);
  visit("flops_per_sample", f.flops_per_sample);
  visit("batch_per_worker", f.batch_per_worker);
}
template <class F, class Visit>
requires std::same_as<std::remove_const_t<F>, case_facts>
void each_member(F& f, Visit&& visit) {
  visit("model", f.model);
  visit("servers", f.servers);
  visit("synchronous", f.synchronous);
  visit("global_batch", f.global_batch);
  visit("data", f.data);
  visit("warnings", f.warnings);
  visit("lossy", f.lossy);
  visit("simulated", f.simulated);
}

} // namespace regatta
