// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/experiment.hpp"
#include "launch/launch.hpp"

namespace regatta {

// Puts measure.timeout into a plan: how long the ranks of a run may stand still.
void set_limits(launch_plan& plan, const case_config& c);

} // namespace regatta
