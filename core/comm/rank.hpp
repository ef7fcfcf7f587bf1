// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/client.hpp"

namespace regatta::comm {

// Returns true if the coordinator sent a job of `regatta comm` or `regatta preflight`.
bool is_job(const control_client& control);

// Runs one rank of such a job: connects, measures, and sends its measurements, or the reason of a failure, to the
// coordinator. Returns the exit code of the process; throws no std::exception. Requires is_job(). [main]
int run_rank(control_client& control);

} // namespace regatta::comm
