// SPDX-License-Identifier: Apache-2.0
//
// Loads a TOML file and command-line options into the cases of an experiment, with every value checked.
#pragma once

#include "experiment/experiment.hpp"
#include "registry/registry.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace regatta {

// Settings on the command line.
struct overrides {
  // "train.batch=64": overrides the file's value and the file's sweep of the key.
  std::vector<std::string> set;
  // "train.batch=32,64": overrides both too. If [sweep] has the key, it keeps its place in the order of the sweeps;
  // else it varies faster than all sweeps before it. It is an error if `set` has the same key.
  std::vector<std::string> sweep;
};

// The components that an experiment may choose from.
struct catalogue {
  std::function<std::vector<std::string>(kind)> ids; // returns the ids of a kind's components, in any order
  // Returns the parameters of a component, owned by the registry; null if no component has that id.
  std::function<const std::vector<rg_param>*(kind, std::string_view id)> parameters;
  std::vector<std::string> unusable; // "FILE: reason" of plugins that failed to load; for errors about unknown ids
};
// Returns the components of `r`, which must outlive the result.
catalogue catalogue_of(const registry& r);

// [any] Returns the experiment of a file with the options of the command line. Throws failure with all errors, one a
// line, "FILE:LINE:COLUMN: error: KEY: expected X, got Y" or "--set KEY: ...", then notes on plugins that did not load.
// Its exit code is `plugin` if the only errors are components that are missing, else `usage`, also if the file cannot
// be read or parsed.
experiment load_experiment(const std::filesystem::path& file, const overrides& o, const catalogue& components);

// [any] Returns experiment.plugin_path as absolute paths, empty if it is not given or not valid. It is needed before a
// catalogue can exist. Ignores errors in file and options; load_experiment() reports them.
std::vector<std::string> plugin_path_of(const std::filesystem::path& file, const overrides& o);

// Returns the text of a TOML file that runs only this case, with all values and parameters filled in and `plugin_path`
// as experiment.plugin_path; without [sweep] and [report], and without defaults that have no effect.
std::string resolved_toml(const case_config& c, const std::vector<std::string>& plugin_path = {});

} // namespace regatta
