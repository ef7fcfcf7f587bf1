// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// Returns describe_host() of this machine with a member `core_independence`, an object (to_json() in
// machine/core_independence.hpp): the throughput of two CPUs that work at once, relative to the sum of each alone. They
// are the CPUs to which two single-threaded ranks would be pinned. The member is null if this process has only one CPU
// or cannot pin threads. Keeps both CPUs busy for about 100 ms, longer on a busy machine: call it only while nothing is
// timed. [main]
nlohmann::json describe_machine();

// Returns the rates of the same two CPUs now (measure_rates_at_once()), for campaign_hooks::calibrate; null if this
// process has only one CPU or cannot pin threads. Takes about 25 ms. [main]
nlohmann::json machine_now();

} // namespace regatta
