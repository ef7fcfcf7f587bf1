// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/load.hpp"
#include "config/schema_rules.hpp"
#include "config/settings.hpp"

#include <optional>
#include <string>

namespace regatta {

// Why a parameter is rejected.
struct parameter_problem {
  bool of_name;     // true: the plugin has no such parameter; false: the value does not fit
  std::string text; // "expected X, got Y" or "model "mlp" has no such parameter, ...": without position and key
};

// [any] Checks a value for parameter `name` of plugin `id` of section `s`. Returns std::nullopt if the plugin accepts
// it. Requires that the catalogue has this plugin.
std::optional<parameter_problem> check_parameter(const catalogue& components, kind s, const std::string& id,
                                                 const std::string& name, const toml_node& value);

// [any] Returns `, did you mean "x"?` for a text that is near one of the parameter's choices, else an empty text.
std::string near_choice(const rg_param& parameter, const toml_node& node);

} // namespace regatta
