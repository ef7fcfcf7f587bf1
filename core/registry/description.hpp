// SPDX-License-Identifier: Apache-2.0
//
// A plugin's description as data. The child that reads a plugin sends it to the process that never loads the file.
#pragma once

#include "registry/inspect.hpp"

#include <deque>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// Owns the texts that parameter tables of described components point to. Deques do not move their elements.
struct description_texts {
  std::deque<std::string> texts;
  std::deque<std::vector<const char*>> lists;
};

// Leaves out functions and the file's path.
nlohmann::json to_json(const loaded_plugin& plugin);
// Returns components whose `file` is the argument and whose functions are null. Appends to `texts`, which must outlive
// them. Throws nlohmann::json::exception or failure (run) if `j` is not from to_json().
loaded_plugin plugin_from_json(const nlohmann::json& j, const std::filesystem::path& file, description_texts& texts);

} // namespace regatta
