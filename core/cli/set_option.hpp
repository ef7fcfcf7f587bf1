// SPDX-License-Identifier: Apache-2.0
//
// --set NAME=VALUE, as the verbs that take one plugin know it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

// JSON where it is some, else a text.
nlohmann::json value_of_option(const std::string& text);

// By name; of two for one name the last counts. Throws failure (usage) where there is no name or no value.
std::map<std::string, nlohmann::json> read_set(const std::vector<std::string>& set);

} // namespace regatta
