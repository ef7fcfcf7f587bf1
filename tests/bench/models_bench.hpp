// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace regatta::bench {

// `./dev bench models`: each model on one worker and one thread, beside PyTorch on the same core, in the precisions that
// both have. Prints ratios; where PyTorch is not installed, ours alone. `build`: the build tree; `only`: the model to
// measure, empty for all.
void compare_models(const std::filesystem::path& build, const std::string& only);

} // namespace regatta::bench
