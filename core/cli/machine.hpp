// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// describe_host() of this machine, and `core_independence` of the two CPUs that two ranks of one thread are pinned to;
// null where this process has only one. Takes about 100 ms on both, longer on a loaded machine: not while anything
// is timed. [main]
nlohmann::json describe_machine();

} // namespace regatta
