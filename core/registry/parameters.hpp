// SPDX-License-Identifier: Apache-2.0
//
// What a plugin's table says about one parameter, and whether a value fits it. Used when a plugin is loaded (is the
// table consistent?), when a file is read (is the value allowed?) and by `describe`.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include <regatta/abi.h>

namespace regatta {

// "an integer from 1 to 64", `one of "eager", "rendezvous"`, `a size in bytes, such as "64KiB", from 1 up`.
std::string expectation(const rg_param& p);

// "integer", "string", "list of floats", ...
std::string type_name(const rg_param& p);

// `given` as parameter_values takes it: texts with a unit become numbers, integers become floats where floats are
// meant. Nothing where it is not what expectation() says.
std::optional<nlohmann::json> accept(const rg_param& p, const nlohmann::json& given);

// The table's default, as accept() returns it; null where a value must be given. For checked components only.
nlohmann::json default_of(const rg_param& p);

// Whether the table bounds it; min and max count only then.
bool is_bounded(const rg_param& p) noexcept;

// Why this entry of a table contradicts itself; empty: it does not. Its name is not null.
std::string contradiction(const rg_param& p);

} // namespace regatta
