// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// Returns describe_host() of this machine with a member `core_independence`: how much the two CPUs slow each other down
// to which two ranks of one thread would be pinned; null if this process has only one CPU or cannot pin threads. Keeps
// both busy for about 100 ms, longer on a busy machine: call it only while nothing is timed. [main]
nlohmann::json describe_machine();

} // namespace regatta
