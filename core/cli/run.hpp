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
  // `out`: folder of the result; empty: results/NAME-TIME. `progress`: auto, always or never show a live line. `log`:
  // the level up to which messages of ranks are shown.
  std::string out, format = "console", progress = "auto", log = "warning";
  bool resume = false, dry_run = false;
  std::string command; // as typed
};

// Runs `regatta run` and prints the results. Returns the exit code: 0, that of the worst failed case, wrong (4),
// run (1) if results could not be written, skipped (77) if no case could run, or interrupted (130). Throws failure for
// errors found before any rank starts. [main]
int run_verb(const run_options& options);

} // namespace regatta
