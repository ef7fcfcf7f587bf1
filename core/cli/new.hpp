// SPDX-License-Identifier: Apache-2.0
//
// The verb `new`.
#pragma once

#include <string>

namespace regatta {

// Writes the folder `name` with the project of a plugin: source, CMakeLists.txt with a test, and an experiment; prints
// the next commands. `what` is "model", "strategy", "transport" or "compressor". Throws failure (usage) if `name` is no
// identifier of lower-case letters, digits and '_', or if the folder exists; failure (run) if it cannot be written.
// Returns the exit code.
int new_verb(const std::string& what, const std::string& name);

} // namespace regatta
