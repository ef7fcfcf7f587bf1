// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

struct component;
class registry;

// Runs `regatta describe KIND/ID` with the plugins in `folders`: prints the parameters (default, allowed values, help),
// the capabilities, and for a model its layers, number of weights and operations. Capabilities of a strategy are its
// plan for two workers and a server. `set` ("name=value") changes parameters of the described instance; values are
// parsed as JSON, else taken as strings. If a parameter without default is not given, prints the parameters only, and
// does not check the values of `set`. If the component cannot run on this machine, prints the reason in place of the
// capabilities. Returns 0. Throws failure: usage for an unknown kind or a wrong value, plugin for a missing component
// or a plugin that crashes, skipped for a model without graph that cannot run on this machine. [main]
int describe_verb(const std::vector<std::filesystem::path>& folders, const std::string& component, bool json,
                  const std::vector<std::string>& set = {});

// Returns what the component can do with these parameters, as the members that `regatta describe --json` prints:
// "capabilities", and "network" for a model. If it cannot be asked, because it crashes or this machine cannot run it,
// "unavailable" says why; "capabilities" may then be an empty object, and "network" is missing. Runs its code in child
// processes, for at most 10 s each. Requires that parameter_values() accepts `chosen`. [main]
nlohmann::ordered_json abilities_of(const registry& plugins, const component& c,
                                    const std::map<std::string, nlohmann::json>& chosen);

} // namespace regatta
