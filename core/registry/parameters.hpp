// SPDX-License-Identifier: Apache-2.0
//
// Checks and describes one entry of a plugin's parameter table. Used when a plugin is loaded (is the table
// consistent?), when a file is read (is the value allowed?) and by `describe`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <regatta/abi.h>

namespace regatta {

// Returns the allowed values, for messages: "an integer from 1 to 64" (bounds are inclusive), `one of "eager",
// "rendezvous"`, `a size in bytes or such as "64KiB" from 1 up`.
std::string expectation(const rg_param& p);

// Returns "integer", "string", "list of floats" and so on.
std::string type_name(const rg_param& p);

// Returns `given` in the form that parameter_values stores: a text with a unit becomes a number (of bytes, nanoseconds
// or bit/s), and an integer becomes a float if the parameter is a float; lists element by element; one string becomes a
// list if the parameter is a list of strings. Returns std::nullopt if the parameter does not allow the value.
std::optional<nlohmann::json> accept(const rg_param& p, const nlohmann::json& given);

// Returns the default in the table, as accept() returns it; JSON's null if there is none and the user must give a
// value. Requires that contradiction(p) is empty.
nlohmann::json default_of(const rg_param& p);

// Returns the words that the parameter allows; empty if it allows any.
std::vector<std::string> choices_of(const rg_param& p);

// Returns true if the table sets bounds (an infinity is no bound on its side); false if min and max are both 0 or both
// NaN, which are then ignored.
bool is_bounded(const rg_param& p) noexcept;

// Returns why this entry of a table contradicts itself, to follow its name in a message: "has min 3 above max 2". Empty
// if it does not. Requires a name that is not null.
std::string contradiction(const rg_param& p);

} // namespace regatta
