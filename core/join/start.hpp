// SPDX-License-Identifier: Apache-2.0
//
// How a process that a launcher started becomes part of its launch. Every launched process stays a keeper until the
// launch is over (join/keeper.hpp). The first process on each host has a child, the agent of the host (join/agent.hpp).
// Process 0 has another child, the coordinator, which runs the verb of the command line. So the agents connect to the
// coordinator, and the processes of a host to its agent:
//
//   coordinator <- TCP - agent of n0 <- Unix - processes 0, 1 of n0      each keeper - fork -> its rank
//               <- TCP - agent of n1 <- Unix - processes 2, 3 of n1
#pragma once

#include <memory>

#include "join/environment.hpp"
#include "join/keeper.hpp"
#include "join/launched_hosts.hpp"

namespace regatta {

// Returns null if no launcher started this process. Under a launcher it returns only in the coordinator, once all
// processes have joined. The launched processes themselves serve the launch and then exit: process 0 with the
// coordinator's exit code (1 if a signal killed it), the others with 0; with 130 if they got a signal, else 1 or the
// code of their agent if the launch did not end in order. Throws failure as find_launcher(), read_secret(),
// pmix_exchange and launched_hosts::launched_hosts() do, also (usage) if launcher_environment::slots is 0, and (run) if
// process 0 cannot listen or a process cannot fork. Call it before there are threads, because it forks. [main]
std::unique_ptr<launched_hosts> start_under_launcher(const launcher_request_handlers& handlers, bool allow_different);

// As start_under_launcher(), without a launcher: this process becomes process 0 and waits for `others` hosts on which
// somebody runs `regatta join`, without a limit of time. Prints the commands with a one-time code for each.
std::unique_ptr<launched_hosts> wait_for_hosts(std::uint32_t others, const launcher_request_handlers& handlers,
                                               bool allow_different);

// `regatta join`: makes this host part of the launch of `address`, HOST:PORT, by a one-time code, and serves it until
// it is over. Returns the exit code: 0, or 1 if the launch did not end in order. Throws failure: usage if the address
// or the code cannot be right, run if the coordinator cannot be reached within 10 s or does not accept the code. Call
// it before there are threads, because it forks. [main]
int join_launch(const std::string& address, const std::string& code, const launcher_request_handlers& handlers);

} // namespace regatta
