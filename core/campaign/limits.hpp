// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/experiment.hpp"
#include "launch/launch.hpp"

namespace regatta {

// Puts a text as measure.timeout takes it into a plan: how long the ranks of a run may stand still.
void set_timeout(launch_plan& plan, const std::string& timeout);

// Puts the case's into a plan.
void set_limits(launch_plan& plan, const case_config& c);

} // namespace regatta
