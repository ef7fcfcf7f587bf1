// SPDX-License-Identifier: Apache-2.0
//
// Which functions a plugin's tables must have. A missing one is refused here, so that nothing else tests for null
// before it calls a required function.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <regatta/abi.h>

namespace regatta {

// Throws failure (plugin), which names the first function that is not there. `functions` has the name of each function
// that must be there, and whether it is. `what` is the table: "transport tcp", "transport tcp, extension
// regatta.cancel/1".
void require_functions(const std::string& what, std::initializer_list<std::pair<const char*, bool>> functions);

// Returns the ids of the extensions of Regatta that this instance of a transport offers. Throws as require_functions()
// does if a table lacks a required function. Requires that create() has returned. `what` is "transport ID".
std::vector<const char*> checked_extensions(const rg_transport& functions, void* self, const std::string& what);

} // namespace regatta
