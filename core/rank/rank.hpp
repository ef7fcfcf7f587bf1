// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/client.hpp"

#include <functional>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// [any] Calls `work` and sends its result, or the text and exit code of its exception, to the coordinator. Returns the
// exit code for the process: 0, or that of the failure (run for other exceptions). A result may be sent only once and
// [main].
int report_to_coordinator(control_client& control, const std::function<nlohmann::json()>& work);

// [main] Runs one rank from its job (control_client::job) to its result, and reports failures to the coordinator.
// Returns the exit code for the process; does not throw failure.
int run_rank(control_client& control, std::uint32_t rank);

} // namespace regatta
