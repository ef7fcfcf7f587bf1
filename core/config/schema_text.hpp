// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace regatta {

// Returns the reference of all keys with types, ranges, defaults and help, for a terminal.
std::string schema_text();

} // namespace regatta
