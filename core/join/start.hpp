// SPDX-License-Identifier: Apache-2.0
//
// How a process that a launcher started becomes part of its launch. Every launched process stays a keeper until the
// launch is over (join/keeper.hpp). The first process on each host has a child, the agent of the host (join/agent.hpp).
// Process 0 has another child, the campaign, which runs the verb of the command line. So the agents connect to the
// campaign, and the processes of a host to its agent:
//
//   campaign <- TCP - agent of n0 <- Unix - processes 0, 1 of n0      each keeper - fork -> its rank
//            <- TCP - agent of n1 <- Unix - processes 2, 3 of n1
#pragma once

#include <memory>

#include "join/environment.hpp"
#include "join/keeper.hpp"
#include "join/launched_hosts.hpp"

namespace regatta {

// Returns null if no launcher started this process. Under a launcher it returns only in the campaign, once all processes
// have joined. The launched processes themselves serve the launch and then exit, process 0 with the campaign's exit code
// (1 if a signal killed the campaign) and the others with 0. Throws failure as find_launcher() and
// launched_hosts::launched_hosts() do. Call it before there are threads, because it forks. [main]
std::unique_ptr<launched_hosts> start_under_launcher(const launcher_request_handlers& handlers, bool allow_different);

} // namespace regatta
