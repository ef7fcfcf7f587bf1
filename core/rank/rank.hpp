// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/client.hpp"

#include <functional>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// [main] Calls `work` and sends its result, or the reason why it threw, to the coordinator. Returns the exit code of
// the process.
int report_to_coordinator(control_client& control, const std::function<nlohmann::json()>& work);

// [main] Runs one rank from its job to its result and reports failures to the coordinator. Returns the exit code of the
// process.
int run_rank(control_client& control, std::uint32_t rank);

} // namespace regatta
