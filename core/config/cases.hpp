// SPDX-License-Identifier: Apache-2.0
//
// Settings become cases: one for each combination of the sweep, with all plugin parameters checked and completed.
#pragma once

#include "config/experiment.hpp"
#include "config/load.hpp"
#include "config/problems.hpp"
#include "config/settings.hpp"

#include <filesystem>

namespace regatta {

// The folders that relative paths start at: `file` for paths in the file (its own folder), `current` for paths in
// command-line options (the working directory). Both are absolute.
struct folders {
  std::filesystem::path file, current;
};
std::string absolute_path(const std::string& path, const origin& from, const folders& start);

// Fills in `name`, `plugin_path`, `cases`, `swept` and `report`. Adds every error to `wrong`.
void make_cases(const settings& all, const catalogue& components, const folders& start, experiment& out,
                problems& wrong);

} // namespace regatta
