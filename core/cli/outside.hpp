// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/client.hpp"
#include "launch/outside.hpp"

namespace regatta {

// Runs one rank for a job of any verb, from start to end. Returns the exit code. [main]
int be_rank(control_client& control);

// Returns the functions that a process of an outside launcher runs for a campaign: it is a rank in one run after the
// other.
outside_duties duties_of_a_rank();

} // namespace regatta
