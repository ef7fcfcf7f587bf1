// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace regatta {

// [main] Returns the installation of this program, against which plugins are built: the folder that has
// lib/cmake/regatta; std::nullopt if the program runs in a build tree.
std::optional<std::filesystem::path> sdk_prefix();

// [main] Builds the CMake project in `source` into the new folder `build`, against the SDK in `prefix`, with cmake from
// PATH. This runs commands of the project. The output goes to the file `build`.log. Returns the .so files that it has
// built. Throws failure (skipped) with the last lines of the output if it cannot be built here.
std::vector<std::filesystem::path> build_plugin(const std::filesystem::path& source, const std::filesystem::path& build,
                                                const std::filesystem::path& prefix);

} // namespace regatta
