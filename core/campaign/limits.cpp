// SPDX-License-Identifier: Apache-2.0
#include "campaign/limits.hpp"

#include "base/units.hpp"

#include <algorithm>

namespace regatta {

void set_timeout(launch_plan& plan, const std::string& timeout) {
  using namespace std::chrono;
  plan.debugged = timeout == "none";
  plan.stall.watched = !plan.debugged;
  if (const auto time = parse_nanoseconds(timeout)) plan.stall.same = duration_cast<milliseconds>(nanoseconds(*time));
}

void set_limits(launch_plan& plan, const case_config& c) {
  using namespace std::chrono;
  set_timeout(plan, c.measure.timeout);
  stall_limits& limits = plan.stall;
  // The source waits data.timeout for a batch and then fails with its own message; this limit must be longer.
  if (c.data.source == "stream")
    limits.rare = std::max(limits.rare, duration_cast<milliseconds>(2 * nanoseconds(c.data.timeout_ns)));
}

} // namespace regatta
