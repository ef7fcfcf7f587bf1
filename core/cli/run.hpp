// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/load.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace regatta {

struct run_options {
  std::filesystem::path file;
  overrides changes;
  std::vector<std::string> plugin_path;
  std::string out, format = "console", progress = "auto", log = "warning";
  bool resume = false, dry_run = false;
  std::string command; // as typed
};

// Runs `regatta run`. Returns the exit code; throws failure for errors found before any rank starts. [main]
int run_verb(const run_options& options);

} // namespace regatta
