// SPDX-License-Identifier: Apache-2.0
//
// Several ranks of one strategy in one process, under virtual time: the engine's own exchange over a virtual network,
// with a model that is a formula. Its gradient depends on the weights it sees, so weights that come late, early or from
// another step change the result.
#pragma once

#include "virtual_network.hpp"

#include "rank/exchange.hpp"
#include "registry/registry.hpp"

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta::test {

struct simulation_setup {
  std::string strategy;
  std::map<std::string, nlohmann::json> parameters; // over the defaults
  std::uint32_t workers = 1, servers = 0;
  bool colocate = false;
  std::uint64_t steps = 5;
  network_options network;
  optimizer_config optimizer;
  std::vector<std::int64_t> tensors = {40, 7, 100, 16}; // elements of each
  bool ghosts = false;
  std::uint64_t straggler_ns = 0; // how much longer rank 1 computes
};

struct simulation_result {
  std::vector<std::vector<float>> weights;      // final, by worker
  std::vector<virtual_network::counts> counted; // by rank
  std::uint64_t virtual_ns = 0;
  std::size_t left_over = 0; // operations that never ended
};

// Runs to the end; throws std::runtime_error when nothing can go on any more (a deadlock), or when weights change while
// a step still reads them.
simulation_result simulate(const registry& plugins, const simulation_setup& setup);

// The same training by one worker, summed in the order of the workers, in double.
std::vector<double> train_serially(const simulation_setup& setup);

// Elements of the arena: each tensor starts at a multiple of 16.
std::uint64_t arena_elements(const simulation_setup& setup);

} // namespace regatta::test
