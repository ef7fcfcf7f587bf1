// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/load.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace regatta {

struct simulate_options {
  std::filesystem::path file, machine, network; // network: empty: that of the machine file
  overrides changes;
  std::vector<std::string> plugin_path;
  std::string out, format = "console", progress = "auto"; // as in run_options
  std::string exported; // "goal": each case's operations, as operations.goal or operations-N.goal beside the result
  bool resume = false;  // as in run_options
  std::size_t jobs = 0; // the most simulations at once; 0: one for each core
  std::string command;  // as typed
};

// Runs `regatta simulate`: the cases of an experiment under virtual time, by simulate_cases() (simulate/campaign.hpp),
// and prints the results, which are marked as simulated. measure.precision, measure.evaluate_every and measure.target
// have no effect. Returns the exit code, as run_verb() does. Throws failure for errors found before the first
// simulation. [main]
int simulate_verb(const simulate_options& options);

} // namespace regatta
