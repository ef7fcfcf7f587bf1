// SPDX-License-Identifier: Apache-2.0
//
// Loads a plugin and checks its description. Every value in it is checked except pointers: a wild pointer crashes the
// child process that reads the description.
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

// Loads the file, which is never unloaded, and reads its description. Throws failure with one line, without the file's
// name.
loaded_plugin load_plugin(const std::filesystem::path& file);

// Does the same, then runs the plugin's destructors as at the end of a program. Requires a process that may crash, such
// as a child of ask(). Calls `stage` before each phase. Returns the description for plugin_from_json()
// (registry/description.hpp). Throws as load_plugin() does.
nlohmann::json try_plugin(const std::filesystem::path& file, const std::function<void(const char*)>& stage);

// Checks and copies a description: ABI version, sizes, parameter tables, required functions. Throws as load_plugin()
// does.
loaded_plugin read_description(const rg_plugin* description, const std::filesystem::path& file);

} // namespace regatta
