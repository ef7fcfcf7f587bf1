// SPDX-License-Identifier: Apache-2.0
//
// Turns settings into cases: one for each combination of the sweep's values, with all plugin parameters checked, and
// defaults for those that are not given.
#pragma once

#include "config/diagnostics.hpp"
#include "config/load.hpp"
#include "config/settings.hpp"
#include "experiment/experiment.hpp"

#include <filesystem>

namespace regatta {

// The folders that relative paths start at: `file` for paths in the file (its own folder), `current` for paths in
// command-line options (the working directory). Both are absolute.
struct folders {
  std::filesystem::path file, current;
};
// [any] Returns those of an experiment's file.
folders folders_of(const std::filesystem::path& file);
// [any] Returns `path` below the folder that belongs to its origin, lexically normalised (symbolic links are not
// resolved). An absolute path is only normalised; "" gives the folder.
std::string absolute_path(const std::string& path, const origin& from, const folders& start);

// [any] Fills in `name`, `plugin_path`, `cases`, `swept`, `reports`, `claims` and, if there is no error, `notices`.
// Requires `out.file`, and `out.name` as the default name. Combinations that differ only in parameters of plugins that
// they do not choose become one case. Adds every error to `wrong`; the cases are then unusable. `all` comes from
// collect().
void make_cases(const settings& all, const catalogue& components, const folders& start, experiment& out,
                diagnostics& wrong);

} // namespace regatta
