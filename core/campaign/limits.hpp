// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/experiment.hpp"
#include "launch/launch.hpp"

namespace regatta {

// Sets the limits of a plan from measure.timeout: how long the ranks of a run may make no progress.
void set_limits(launch_plan& plan, const case_config& c);

} // namespace regatta
