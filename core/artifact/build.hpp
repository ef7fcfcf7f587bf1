// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace regatta {

// [main] Returns the installation of this program, against which plugins are built: the folder that has
// lib/cmake/regatta; std::nullopt if there is none, as in a build tree.
std::optional<std::filesystem::path> sdk_prefix();

// [main] Builds the CMake project in `source` into the new folder `build`, against the SDK in `prefix`, with cmake from
// PATH. This runs commands of the project. The output goes to the file `build`.log. Returns the .so files below `build`
// but those in folders CMakeFiles, sorted; may be empty. Throws failure (skipped) if the project cannot be built here,
// with the last lines of the output, or if cmake cannot be started.
std::vector<std::filesystem::path> build_plugin(const std::filesystem::path& source, const std::filesystem::path& build,
                                                const std::filesystem::path& prefix);

} // namespace regatta
