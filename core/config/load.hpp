// SPDX-License-Identifier: Apache-2.0
//
// From a TOML file and the command line to the cases of an experiment, every value checked and in place.
#pragma once

#include "config/experiment.hpp"
#include "registry/registry.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace regatta {

// What the command line says beside the file.
struct overrides {
  std::vector<std::string> set;   // "train.batch=64": overrides the file's value, and its sweep of the key
  std::vector<std::string> sweep; // "train.batch=32,64": likewise; varies faster than the file's sweeps
};

// The components that a file may choose from.
struct catalogue {
  std::function<std::vector<std::string>(kind)> ids;
  // The component's parameters; null where there is none of that id. Valid as long as the catalogue.
  std::function<const std::vector<rg_param>*(kind, std::string_view id)> parameters;
  std::vector<std::string> unusable; // "FILE: why": what could not be loaded; shown where an id is not known
};
// Refers to the registry.
catalogue catalogue_of(const registry& r);

// Throws failure with all errors, one a line, "FILE:LINE:COLUMN: error: KEY: expected X, got Y": exit code usage, or
// plugin where nothing is wrong but that components are not there.
experiment load_experiment(const std::filesystem::path& file, const overrides& o, const catalogue& components);

// experiment.plugin_path as absolute paths, which must be known before there is a catalogue. Never throws for what is
// wrong with the file: load_experiment will say it.
std::vector<std::string> plugin_path_of(const std::filesystem::path& file, const overrides& o);

// A TOML file that runs just this case.
std::string resolved_toml(const case_config& c, const std::vector<std::string>& plugin_path = {});

} // namespace regatta
