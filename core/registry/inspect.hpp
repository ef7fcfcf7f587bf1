// SPDX-License-Identifier: Apache-2.0
//
// From a file to checked components: loads a plugin and reads its description, trusting nothing that it says but its
// pointers (a wild one ends the child that reads).
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
  std::vector<std::string> unknown; // what a newer plugin holds and this version cannot use, one line each
};

// Loads the file for good and reads what it holds. Throws failure with one line, without the file's name.
loaded_plugin load_plugin(const std::filesystem::path& file);

// Does the same and then what happens when the program ends, in a process that can be spared; `stage` hears how far it
// has come. Returns the description for plugin_from_json() (registry/description.hpp). Throws as load_plugin() does.
nlohmann::json try_plugin(const std::filesystem::path& file, const std::function<void(const char*)>& stage);

// Checks and copies a description: ABI, sizes, parameter tables, required functions. Throws likewise.
loaded_plugin read_description(const rg_plugin* description, const std::filesystem::path& file);

} // namespace regatta
