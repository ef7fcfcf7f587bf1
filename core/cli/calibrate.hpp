// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/load.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace regatta {

struct calibrate_options {
  std::filesystem::path file, out; // the experiment, and the machine file that is written
  overrides changes;
  std::vector<std::string> plugin_path;
  std::vector<std::string> transports = {"shm", "tcp"};
  std::string comm;              // a result of `regatta comm` between two hosts; empty: [network] is an assumption
  std::string progress = "auto"; // auto, always or never show a live line
};

// Runs `regatta calibrate`: measures the model of the experiment's first case on this machine, and messages of the
// transports between two ranks, and writes the machine file. Prints what it found. Returns 0. Throws failure: that of
// load_experiment() or read_measured_network(), plugin if there is no such transport, usage if the machine file cannot be
// written, run if a fit is bad or steps vary too much, or that of a run that fails or is interrupted. [main]
int calibrate_verb(const calibrate_options& options);

} // namespace regatta
