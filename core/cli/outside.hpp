// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/client.hpp"
#include "launch/outside.hpp"

namespace regatta {

// Runs one rank from start to end, of `regatta run` or `regatta comm` as the job of the control channel says. Sends its
// result or failure to the coordinator. Returns the exit code of the process. [main]
int be_rank(control_client& control);

// Returns the functions that a process of a launcher runs when the campaign asks it to join a transport or to be a rank
// in a run. They print failures to standard error and return the exit code.
outside_duties duties_of_a_rank();

} // namespace regatta
