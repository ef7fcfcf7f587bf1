// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace regatta::bench {

// `./dev bench models`: each model on one worker and one thread, beside PyTorch on the same core, in the precisions that
// both have. Prints ratios; where PyTorch is not installed, ours alone. `build`: the build tree.
void compare_models(const std::filesystem::path& build);

} // namespace regatta::bench
