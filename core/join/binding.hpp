// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace regatta {

// Binds this thread to `cpus` (empty: to all that the control group allows). Throws failure (run) if the kernel
// refuses. [main]
void run_on(const std::vector<int>& cpus);

} // namespace regatta
