// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/client.hpp"
#include "launch/outside.hpp"

namespace regatta {

// A rank's whole life, of whatever verb its job is. Returns the exit code. [main]
int be_rank(control_client& control);

// What a process that mpirun or the like has started does for the campaign of `regatta run`: be a rank, again and again.
outside_duties duties_of_a_rank();

} // namespace regatta
