// SPDX-License-Identifier: Apache-2.0
//
// Checks and describes one entry of a plugin's parameter table. Used when a plugin is loaded (is the table
// consistent?), when a file is read (is the value allowed?) and by `describe`.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include <regatta/abi.h>

namespace regatta {

// Returns "an integer from 1 to 64", `one of "eager", "rendezvous"`, `a size in bytes or such as "64KiB" from 1 up`.
std::string expectation(const rg_param& p);

// Returns "integer", "string", "list of floats" and so on.
std::string type_name(const rg_param& p);

// Returns `given` in the form that parameter_values takes: a text with a unit becomes a number, and an integer becomes
// a float if the parameter is a float. Returns nullopt if the parameter does not allow the value.
std::optional<nlohmann::json> accept(const rg_param& p, const nlohmann::json& given);

// Returns the default in the table, as accept() returns it; null if a value must be given. Requires a checked
// component.
nlohmann::json default_of(const rg_param& p);

// Returns true if the table sets bounds; otherwise min and max are ignored.
bool is_bounded(const rg_param& p) noexcept;

// Returns why this entry of a table contradicts itself; empty if it does not. Requires a name that is not null.
std::string contradiction(const rg_param& p);

} // namespace regatta
