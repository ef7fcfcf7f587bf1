// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/client.hpp"

namespace regatta {

// The life of one rank, from its job to its result; returns the exit code of the process. What goes wrong is reported
// to the coordinator. [main]
int run_rank(control_client& control, std::uint32_t rank);

} // namespace regatta
