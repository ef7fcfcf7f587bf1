// SPDX-License-Identifier: Apache-2.0
//
// A plugin's description as data: how it gets from the child that read it to a process that never loads the file.
#pragma once

#include "registry/inspect.hpp"

#include <deque>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// Owns the texts that parameter tables of described components point to. Deques: nothing in them moves.
struct description_texts {
  std::deque<std::string> texts;
  std::deque<std::vector<const char*>> lists;
};

// All but functions and the file.
nlohmann::json to_json(const loaded_plugin& plugin);
// Functions are null. `texts` must live as long as the components.
loaded_plugin plugin_from_json(const nlohmann::json& j, const std::filesystem::path& file, description_texts& texts);

} // namespace regatta
