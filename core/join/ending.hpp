// SPDX-License-Identifier: Apache-2.0
//
// SIGINT, SIGTERM and SIGHUP in the processes of a launch. A launcher that ends its job sends them to its processes one
// after the other, or also to their children. Only the campaign ends a run in order and keeps the finished cases, so
// the other processes stay for it: process 0 passes each signal on to the campaign, and the rest wait 3 s for the end
// of the launch.
#pragma once

#include <sys/types.h>

namespace regatta {

// Takes the place of the handlers of end_at_interruptions() in a launched process or the agent of a host
// (join/agent.hpp). Passes signals on to `campaign` if that is > 0; otherwise the process ends with code 130 at the
// second signal, or 3 s after the first. [main]
void await_end_at_interruptions(pid_t campaign = -1);

// Returns whether a signal has come since await_end_at_interruptions(). [any]
bool end_was_asked() noexcept;

} // namespace regatta
