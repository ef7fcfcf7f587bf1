// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/client.hpp"
#include "join/keeper.hpp"

namespace regatta {

// Runs one rank from start to end, of `regatta run` or `regatta comm` as the job of the control channel says. Sends its
// result or failure to the coordinator. Returns the exit code of the process. [main]
int run_rank_process(control_client& control);

// Returns the functions that a process of a launcher runs when the campaign asks it to join a transport or to be a rank
// in a run. They print failures to standard error and return the exit code.
launcher_request_handlers make_launcher_request_handlers();

} // namespace regatta
