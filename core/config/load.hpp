// SPDX-License-Identifier: Apache-2.0
//
// Loads a TOML file and command-line options into the cases of an experiment, with every value checked.
#pragma once

#include "config/experiment.hpp"
#include "registry/registry.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace regatta {

// Settings on the command line.
struct overrides {
  std::vector<std::string> set;   // "train.batch=64": overrides the value in the file, and its sweep of the key
  std::vector<std::string> sweep; // "train.batch=32,64": overrides both too; varies faster than the file's sweeps
};

// The components that an experiment may choose from.
struct catalogue {
  std::function<std::vector<std::string>(kind)> ids;
  // Returns the parameters of a component; null if no component has that id. Valid as long as the catalogue.
  std::function<const std::vector<rg_param>*(kind, std::string_view id)> parameters;
  std::vector<std::string> unusable; // "FILE: reason" of plugins that failed to load; for errors about unknown ids
};
// The result refers to `r`, which must outlive it.
catalogue catalogue_of(const registry& r);

// Throws failure with all errors, one a line, "FILE:LINE:COLUMN: error: KEY: expected X, got Y". Its exit code is
// `plugin` if the only errors are components that are missing, else `usage`.
experiment load_experiment(const std::filesystem::path& file, const overrides& o, const catalogue& components);

// Returns experiment.plugin_path as absolute paths. It is needed before a catalogue can exist. Ignores errors in the
// file, which load_experiment reports.
std::vector<std::string> plugin_path_of(const std::filesystem::path& file, const overrides& o);

// Returns a TOML file that runs only this case.
std::string resolved_toml(const case_config& c, const std::vector<std::string>& plugin_path = {});

} // namespace regatta
