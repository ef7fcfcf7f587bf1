// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// Returns describe_host() of this machine, and `core_independence` of the two CPUs to which two ranks of one thread
// would be pinned; null if this process has only one CPU. Occupies both for about 100 ms, longer on a busy machine:
// must not run while something is timed. [main]
nlohmann::json describe_machine();

} // namespace regatta
