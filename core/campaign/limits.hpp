// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiment/experiment.hpp"
#include "launch/launch.hpp"

namespace regatta {

// Sets how long the ranks of a plan may make no progress, from the value of measure.timeout: a time such as "20s";
// "none": for ever, for debuggers; any other text, such as "auto", leaves the plan's limits. Does not check the text.
void set_timeout(launch_plan& plan, const std::string& timeout);

// Sets the limits of a plan from the case's measure.timeout. With a stream as data source, also raises the limit of
// rare operations to twice data.timeout, so that the source's own message comes first.
void set_limits(launch_plan& plan, const case_config& c);

} // namespace regatta
