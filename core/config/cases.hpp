// SPDX-License-Identifier: Apache-2.0
//
// From settings to cases: every combination of the sweep, its plugins' parameters checked and completed.
#pragma once

#include "config/experiment.hpp"
#include "config/load.hpp"
#include "config/problems.hpp"
#include "config/settings.hpp"

#include <filesystem>

namespace regatta {

// What relative paths start at: in the file its folder, in options the current one. Absolute.
struct folders {
  std::filesystem::path file, current;
};
std::string absolute_path(const std::string& path, const origin& from, const folders& start);

// Fills in `name`, `plugin_path`, `cases`, `swept` and `report`. What is wrong is added to `wrong`.
void make_cases(const settings& all, const catalogue& components, const folders& start, experiment& out,
                problems& wrong);

} // namespace regatta
