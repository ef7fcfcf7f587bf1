// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace regatta::bench {

// `./dev bench comm`: transports and all-reduce beside OpenMPI, gloo and the machine's limits, in turn, pinned to the
// same cores. Prints tables; what is not installed is said to be missing. `build`: the build tree.
void compare_communication(const std::filesystem::path& build);

} // namespace regatta::bench
