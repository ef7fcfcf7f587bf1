// SPDX-License-Identifier: Apache-2.0
//
// A simulated run as a file in GOAL, for LogGOPSim (simulator/goal_recorder.hpp).
#pragma once

#include "simulator/simulation.hpp"

#include <string>

namespace regatta {

// [any] Simulates the run, and writes its operations in GOAL to `file`: those of all steps, the warm-up included. The
// heading has the run's virtual end and the costs of a message between hosts. Throws what simulate() throws; failure
// (usage) if the ranks used native collectives, failure (run) if the file cannot be written.
simulation_result simulate_to_goal(const registry& loading, simulation_setup setup, const std::string& file);

} // namespace regatta
