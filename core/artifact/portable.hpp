// SPDX-License-Identifier: Apache-2.0
//
// The TOML of an experiment in an artifact: without paths of the machine that wrote it, and without anything that would
// make another machine run code from elsewhere.
#pragma once

#include <string>
#include <vector>

namespace regatta {

// [any] Returns the text of whole_toml() (config/load.hpp) for an artifact: without experiment.plugin_path, and with
// each path of data as data/NAME. Throws toml_error if it is no TOML.
std::string portable_toml(const std::string& whole);

// [any] Returns what the TOML of a stranger's artifact must not have, a sentence each: experiment.plugin_path, a
// plugin's file in place of an id, a path of data outside the folder, data.producer (a command of the shell) unless
// `set`, the values of --set, gives another one. Also if it is no TOML.
std::vector<std::string> unsafe_in(const std::string& toml, const std::vector<std::string>& set);

} // namespace regatta
