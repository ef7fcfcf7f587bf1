// SPDX-License-Identifier: Apache-2.0
//
// Loads a TOML file and command-line options into the cases of an experiment, with every value checked.
#pragma once

#include "experiment/experiment.hpp"
#include "registry/registry.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace regatta {

// Settings on the command line. A value is TOML, or a string without quotes if it is no TOML value. Relative paths in
// it are relative to the working directory; those in the file, to the file's folder.
struct overrides {
  // Options --set: "train.batch=64". Overrides the file's value, and removes the key from the file's sweeps. If a key
  // is given twice, the last value takes precedence.
  std::vector<std::string> set;
  // Options --sweep: "train.batch=32,64". Overrides the file's value, and its sweep of the key. If [sweep] has the key
  // on its own, the new values keep its place in the order of the sweeps; else (also in place of a key of
  // [[sweep.zip]]) they vary faster than all sweeps before them. It is an error if a key is given twice, or in `set`
  // too.
  std::vector<std::string> sweep;
};

// The components that an experiment may choose from.
struct catalogue {
  std::function<std::vector<std::string>(kind)> ids; // returns the ids of a kind's components, in any order
  // Returns the parameters of a component, owned by the registry of catalogue_of(); null if no component has that id.
  std::function<const std::vector<rg_param>*(kind, std::string_view id)> parameters;
  // Returns the ids of the file's components of that kind that can be chosen, in any order.
  std::function<std::vector<std::string>(kind, const std::filesystem::path& file)> ids_in;
  std::vector<std::string> unusable; // "FILE: reason" of plugins that failed to load; for errors about unknown ids
};
// Returns the components of `r`, which must outlive the result.
catalogue catalogue_of(const registry& r);

// [any] Returns the experiment of a file with the options of the command line; `components` is used during the call
// only. Looks whether data files exist, and does not open them. Throws failure with all errors, one a line,
// "FILE:LINE:COLUMN: error: KEY: expected X, got Y" or "--set KEY: ...". If a component is missing, notes on plugins
// that did not load follow. Its exit code is `plugin` if all errors are missing components, else `usage`, also if the
// file cannot be read or parsed.
//
// With `text`, that is what the file holds, and `file` only names it and its folder.
experiment load_experiment(const std::filesystem::path& file, const overrides& o, const catalogue& components,
                           const std::optional<std::string>& text = std::nullopt);

// [any] Returns the files that model.plugin, strategy.plugin and transport.plugin name, in place of an id, and that
// exist; then experiment.plugin_path, of `set` or else of the file. All are absolute paths. A registry of these files
// and folders, and so a catalogue, can only be made afterwards. Ignores errors in file and options: load_experiment()
// reports them.
// `text` is as above.
std::vector<std::string> plugin_path_of(const std::filesystem::path& file, const overrides& o,
                                        const std::optional<std::string>& text = std::nullopt);

// [any] Returns the text of a TOML file that runs only this case: every key and every parameter of the chosen plugins,
// defaults included, and `plugin_path` as experiment.plugin_path, empty or not. Leaves out [sweep], [[claim]],
// [report], keys without a value, and keys at their default that have no effect on the case (loading them would print a
// notice).
std::string resolved_toml(const case_config& c, const std::vector<std::string>& plugin_path = {});

// [any] Returns the text of a TOML file that describes the same experiment as `file` with the options: all keys that
// are given, sweeps, [report] and claims, with absolute paths, and with the ids of plugins in place of their files,
// which become a part of experiment.plugin_path. `loaded` is what load_experiment() returned for them. Throws
// toml_error if the file has changed since and cannot be read or is no TOML.
std::string whole_toml(const std::filesystem::path& file, const overrides& o, const catalogue& components,
                       const experiment& loaded);

// [any] Returns the reference of all keys with types, ranges, defaults and help, for a terminal.
std::string schema_text();

} // namespace regatta
