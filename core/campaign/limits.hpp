// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/experiment.hpp"
#include "launch/launch.hpp"

namespace regatta {

// Sets how long the ranks of a plan may make no progress, from a text in the form of measure.timeout.
void set_timeout(launch_plan& plan, const std::string& timeout);

// Sets the limits of a plan from the case's measure.timeout.
void set_limits(launch_plan& plan, const case_config& c);

} // namespace regatta
