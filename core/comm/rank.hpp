// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/client.hpp"

namespace regatta::comm {

// Returns true if the job of the control channel is one of `regatta comm`.
bool is_job(const control_client& control);

// Runs one rank of `regatta comm`: connects, measures, and sends its measurements. Returns the exit code. [main]
int run_rank(control_client& control);

} // namespace regatta::comm
