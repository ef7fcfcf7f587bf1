// SPDX-License-Identifier: Apache-2.0
//
// The verb `new`.
#pragma once

#include <string>

namespace regatta {

// Creates the folder `name` in the working directory, and writes the project of a plugin to it from the templates of
// the installation: source, CMakeLists.txt with a test, and an experiment; prints the next commands. `what` is "model",
// "strategy", "transport", "compressor" or "executor". `name` consists of 1 to 64 lower-case letters, digits and '_',
// begins with a letter, and is no word of C++, no predefined target of CMake ("test", "all", ...), and none of rg,
// regatta, std and main. Throws failure (usage) for another name or if the folder exists; failure (run) if the
// templates are missing or the folder cannot be written; the files written so far then remain. Returns 0.
int new_verb(const std::string& what, const std::string& name);

} // namespace regatta
