// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/client.hpp"

#include <functional>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// [any] Calls `work`. Sends what it returns to the coordinator as this rank's result, or reports the text and exit code
// of its failure (run for another std::exception; a peer_failure as a consequence of another rank's). Returns the exit
// code for the process: 0, or the one reported; failing to send the result is reported too. Throws only exceptions that
// are no std::exception. `work` may return a result only [main] and once; failures may be reported repeatedly.
int report_to_coordinator(control_client& control, const std::function<nlohmann::json()>& work);

// [main] Runs rank `rank` (control_client::rank) from its job (control_client::job) to its result: training, or timing
// of kernels. Blocks until the rank has ended, and reports as report_to_coordinator(), whose exit code it returns. Call
// it once for each `control`.
int run_rank(control_client& control, std::uint32_t rank);

} // namespace regatta
