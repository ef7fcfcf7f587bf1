// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace regatta::bench {

// `./dev bench models`: each model on one worker and one thread, beside PyTorch on the same core, in the precisions
// that both have, and how far gradients are from those of the direct algorithm. Prints ratios, and a table of them;
// where PyTorch is not installed, ours alone. `build`: the build tree; `only`: the id of one model, or nothing for all.
// Throws std::invalid_argument where it compares no such model.
void compare_models(const std::filesystem::path& build, const std::string& only = {});

} // namespace regatta::bench
