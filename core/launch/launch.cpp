// SPDX-License-Identifier: Apache-2.0
#include "launch/launch.hpp"

#include "launch/coordinator.hpp"

namespace regatta {

launch_result launch(const launch_plan& plan, const launch_hooks& hooks) {
  return coordinator(plan, hooks).run();
}

} // namespace regatta
