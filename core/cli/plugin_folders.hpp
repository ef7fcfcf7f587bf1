// SPDX-License-Identifier: Apache-2.0
//
// Where plugins are searched.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace regatta {

// Returns the absolute paths of the plugins' folders and files, in order of precedence: `command_line` (--plugin-path),
// REGATTA_PLUGIN_PATH (separated by ':'), `experiment` (plugin_path_of()); then those that exist of the user's folder
// ($XDG_DATA_HOME or ~/.local/share)/regatta/plugins, of built_in_folder(), and of plugins.d in it, where other
// packages put theirs. Throws failure (usage) if one of the first three does not exist.
std::vector<std::filesystem::path> plugin_folders(const std::vector<std::string>& command_line,
                                                  const std::vector<std::string>& experiment = {});

} // namespace regatta
