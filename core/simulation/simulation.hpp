// SPDX-License-Identifier: Apache-2.0
//
// Several ranks of one strategy in one process, under virtual time: the engine's own exchange over a virtual network,
// with a model that is a formula. Its gradient depends on the weights it sees, so weights that come late, early or from
// another step change the result.
#pragma once

#include "virtual_network.hpp"

#include "rank/exchange.hpp"
#include "registry/registry.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

struct simulation_setup {
  std::string strategy;
  std::map<std::string, nlohmann::json> parameters; // over the defaults
  std::uint32_t workers = 1, servers = 0;
  bool colocate = false;
  std::uint32_t hosts = 1; // that ranks lie on, in blocks
  std::uint64_t steps = 5;
  network_options network;
  optimizer_config optimizer;
  std::vector<std::int64_t> tensors = {40, 7, 100, 16}; // elements of each
  std::vector<std::vector<std::int64_t>> shapes;        // of each, as many elements; none: all are vectors
  // How strongly each element is pulled to a value of its own; 0: not at all, gradients only go up and down. The values
  // of neighbouring workers differ by `pull_apart`, and their mean is where one worker goes that has all gradients.
  double pull = 0, pull_apart = 0;
  std::int64_t table_rows = 0; // of a sparse table; 0: there is none
  std::int64_t table_row = 5;  // elements of each
  std::uint64_t touched = 9;   // rows that a worker touches in a step, at most
  bool ghosts = false;
  std::uint64_t straggler_ns = 0; // how much longer rank 1 computes
  plugin_host::log_function log;  // what strategies say
  std::uint64_t late_ns = 0;      // how much later than the others rank 0 begins
};

struct simulation_result {
  std::vector<std::vector<float>> weights; // final, by worker
  // Rows of the table that are not as they started, by rank: what it holds as a worker and as a server.
  std::vector<std::map<std::uint64_t, std::vector<float>>> worker_rows, server_rows;
  std::vector<std::uint64_t> server_held;       // rows that take memory, by rank
  std::vector<virtual_network::counts> counted; // by rank
  std::vector<strategy_records> records;        // by rank
  std::vector<std::uint64_t> state_bytes;       // of the optimiser, by rank
  std::uint64_t virtual_ns = 0;
  std::size_t left_over = 0; // operations that never ended
};

// Runs to the end; throws std::runtime_error when nothing can go on any more (a deadlock), when weights change while a
// step still reads them, or where ghosts are asked for and the strategy works on bytes.
simulation_result simulate(const registry& plugins, const simulation_setup& setup);

// The same training by one worker, summed in the order of the workers, in double: the arena, then the table.
std::vector<double> train_serially(const simulation_setup& setup);
// The rows that worker w touches in a step, ascending.
std::vector<std::uint64_t> rows_touched(const simulation_setup& setup, std::uint32_t w, std::uint64_t step);

// Every worker by itself, with a gradient divided by its own batch; weights averaged every k steps and at the end: the
// arena, then the table.
std::vector<double> train_locally(const simulation_setup& setup, std::uint64_t k);

// What the simulated model does: the start of a weight, and the gradient of worker `w` of `n` where it is `weight`.
float initial_weight(std::uint64_t element);
// Without `pull`.
float gradient_of(std::uint32_t w, std::uint32_t n, std::uint64_t step, std::uint64_t element, float weight);

// Elements of the arena: each tensor starts at a multiple of 16.
std::uint64_t arena_elements(const simulation_setup& setup);

} // namespace regatta
