// SPDX-License-Identifier: Apache-2.0
//
// Loads a plugin and checks its description. Every value in it is checked except pointers: a wild pointer crashes the
// process that reads the description. So a file that was not tried before is read in a child process (try_plugin()).
#pragma once

#include "registry/registry.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

struct loaded_plugin {
  std::vector<component> components;
  std::vector<std::string> unknown; // components of a newer interface that this version cannot use, one line each
};

// Loads the file into this process, never unloads it, and reads its description. Throws failure (plugin) with one line
// that does not name the file.
loaded_plugin load_plugin(const std::filesystem::path& file);

// Does the same, then unloads the file, which runs the plugin's static destructors. Requires a process that may crash,
// such as a child of run_in_child(). Calls `stage` before each phase with a phrase such as "was being loaded", the
// `doing` of stage_function (registry/run_in_child.hpp). Returns the description without functions and without the
// file's path, for plugin_from_json(). Throws failure (plugin) with one line that does not name the file.
nlohmann::json try_plugin(const std::filesystem::path& file, const std::function<void(const char*)>& stage);

// Checks and copies a description: ABI version, sizes, parameter tables, required functions. The copy still points to
// functions and texts of the plugin, which must stay loaded. `description` must not be null; `file` becomes
// component::file. Throws as load_plugin() does.
loaded_plugin read_description(const rg_plugin* description, const std::filesystem::path& file);

} // namespace regatta
