// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/load.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace regatta {

struct run_options {
  std::filesystem::path file; // empty with `again`
  std::string again;          // a result whose cases run again; empty: those of `file`
  std::size_t only_case = 0;  // of `again`: the number of the case, counted from 1; 0: all
  overrides changes;
  std::vector<std::string> plugin_path;
  // `out`: folder of the result; empty: results/NAME-TIME. `progress`: auto, always or never show a live line, or
  // json. `log`: the level up to which messages of ranks are shown.
  std::string out, format = "console", progress = "auto", log = "warning";
  bool resume = false, dry_run = false;
  std::filesystem::path machine, network; // of a dry run whose steps are simulated, as in simulate_options; or empty
  std::uint32_t wait_for = 0;             // hosts that join by `regatta join`; 0: none
  bool allow_different_binaries = false;  // on a launcher's hosts: warn instead of refusing
  std::string command;                    // as typed
};

// Runs `regatta run` and prints the results, with `again` their comparison with the stored ones. Returns the worst
// (worse_exit_code()) of these exit codes: 0; that of each failed case; wrong (4) if a result check failed or a repeat
// missed its target; run (1) if results could not be written or a host was lost; skipped (77) if no case could run;
// interrupted (130). Of a dry run, that of dry_run(). Throws failure for errors found before any rank starts. Under a
// launcher it returns only in the coordinator (join/start.hpp). `conclude`, if any, is called with the exit code once
// the result is written, before progress as JSON ends, and returns that of the command. [main]
int run_verb(const run_options& options, const std::function<int(int code_of_run)>& conclude = {});

} // namespace regatta
