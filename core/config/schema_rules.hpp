// SPDX-License-Identifier: Apache-2.0
//
// The values that a file may give to the keys of the schema.
#pragma once

#include "experiment/schema.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

const schema_key* find_key(std::string_view path); // [any] by the whole path; null: no such key. Valid for ever

// [any] expectation() returns the values that the key takes, for messages: "an integer from 1 to 64". accept() returns
// the value in the form that is stored (a time "5ms" as 5000000 ns, or as text if the key takes words too; one string
// for a list as a list), std::nullopt if the key does not take it.
std::string expectation(const schema_key& key);
std::optional<nlohmann::json> accept(const schema_key& key, const nlohmann::json& given);

// Returns the kind of plugin_sections whose section has this name (name_of()); std::nullopt for other sections.
std::optional<kind> find_plugin_section(std::string_view name);

// Returns the names of all tables that a file may have at the top: the sections of schema(), "sweep", "claim" and
// "report".
std::vector<std::string> section_names();

} // namespace regatta
