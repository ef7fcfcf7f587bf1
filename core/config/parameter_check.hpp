// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/load.hpp"
#include "config/schema.hpp"
#include "config/settings.hpp"

#include <optional>
#include <string>

namespace regatta {

struct parameter_problem {
  bool of_name; // there is no such parameter; else its value does not fit
  std::string text;
};

// Checks a value for parameter `name` of plugin `id`. Returns nothing where it fits. Requires that the catalogue has the
// plugin. [any]
std::optional<parameter_problem> check_parameter(const catalogue& components, plugin_section s, const std::string& id,
                                                 const std::string& name, const toml_node& value);

} // namespace regatta
