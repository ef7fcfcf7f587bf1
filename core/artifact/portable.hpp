// SPDX-License-Identifier: Apache-2.0
//
// The TOML of an experiment in an artifact: without paths of the machine that wrote it, and without anything that would
// make another machine run code from elsewhere.
#pragma once

#include <string>
#include <vector>

namespace regatta {

// [any] Returns `whole`, the text of whole_toml() (config/load.hpp), for an artifact: without experiment.plugin_path,
// and with data/NAME in place of each path of data (data.path, data.evaluation_path, data.vocabulary). Throws
// toml_error if `whole` is no TOML.
std::string portable_toml(const std::string& whole);

// [any] Returns what the TOML of a stranger's artifact must not have, a sentence each: experiment.plugin_path, a
// plugin's file in place of an id, a path of data outside the artifact's folder, data.producer (a command of the shell)
// unless `set`, the values of --set, gives another one. If `toml` is no TOML, returns one sentence that says so.
std::vector<std::string> unsafe_in(const std::string& toml, const std::vector<std::string>& set);

} // namespace regatta
