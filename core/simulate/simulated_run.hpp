// SPDX-License-Identifier: Apache-2.0
//
// One run of a case under virtual time, with the times of a machine file.
#pragma once

#include "campaign/prepare.hpp"
#include "simulate/machine_file.hpp"
#include "simulate/touched_rows.hpp"
#include "simulator/simulation.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

// A dense tensor of a model, in the order in which gradients become ready.
struct simulated_tensor {
  std::string name;
  std::vector<std::int64_t> shape;
  bool compressible = true;
};

// [main] Returns the dense tensors of the case's model, which a child process describes. Throws failure as
// plugin_facts_cache::of() does.
std::vector<simulated_tensor> tensors_of(const registry& plugins, const case_config& c);

// [any] Returns the computing times of a step of one worker alone; `tables` are those of the model. Throws failure
// (usage) if the machine file is of another model: its id or its tensors are others, or the model's operations are
// unknown and the file has only their rate.
compute_times base_times(const machine_file& m, const std::vector<simulated_tensor>& tensors, const case_config& c,
                         const model_facts& facts, const simulated_tables& tables = {});

// The input of simulate_run() beside the case.
struct run_to_simulate {
  const case_config* config = nullptr;
  const prepared_run* run = nullptr;
  const plugin_facts* facts = nullptr;
  const machine_file* machine = nullptr;
  const std::vector<simulated_tensor>* tensors = nullptr;
  std::uint64_t seed = 1; // of the variation of computing times
  const simulated_tables* tables = &no_tables;
  std::string goal;  // file to which simulate_run() writes the run's operations in GOAL; empty: none
  std::string trace; // with measure.trace: file to which simulate_run() writes the run's trace; empty: none
};

// The setup of the simulation of a run; its steps are warm-up and timed steps. The arguments must outlive it. Throws
// failure as base_times() and draws_of() do.
simulation_setup setup_of(const run_to_simulate& r);

// [any] Simulates the run. Returns the rank_record of each rank as JSON, as ranks of a real run send it; what a
// simulation cannot know, such as losses, is missing, and so are the ranks of a host that leaves. Throws what
// setup_of(), simulate() and departure_of() throw; failure (usage) if the run has native collectives and GOAL is asked
// for, (run) if a file cannot be written. Requires a registry that loads.
nlohmann::json simulate_run(const registry& loading, const run_to_simulate& r);

// [any] Returns whether a run depends on its seed: on times that are drawn.
bool varies(const machine_file& m, const case_config& c);

// [any] Returns what the simulation leaves out although it matters for this run, as warnings of its case.
std::vector<std::string> not_modelled(const run_to_simulate& r);

} // namespace regatta
