// SPDX-License-Identifier: Apache-2.0
//
// Parses --set NAME=VALUE, for the verbs that take one plugin.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

// Returns the value that the text is as JSON; if it is not valid JSON, the text itself as a string.
nlohmann::json value_of_option(const std::string& text);

// Returns the values of options "NAME=VALUE" by name; the last value of a name takes precedence. Throws failure (usage)
// if a name or the equals sign is missing.
std::map<std::string, nlohmann::json> read_set(const std::vector<std::string>& set);

} // namespace regatta
