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
  std::string progress = "auto"; // as in run_options
};

// Runs `regatta calibrate`: measures the model of the experiment's first case on this machine, and messages of the
// transports between two ranks, and writes the machine file. Prints what it found. Returns the exit code. Throws
// failure if the file cannot be written, a run fails, or a fit is bad. [main]
int calibrate_verb(const calibrate_options& options);

} // namespace regatta
