// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/client.hpp"

namespace regatta::comm {

// Whether the control channel's job is one of `regatta comm`.
bool is_job(const control_client& control);

// A rank's whole life in it: connects, measures, brings back what it measured. Returns the exit code. [main]
int run_rank(control_client& control);

} // namespace regatta::comm
