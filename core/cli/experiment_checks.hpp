// SPDX-License-Identifier: Apache-2.0
//
// Checks of an experiment that run before any rank starts, and need plugins, data or hosts beside its file.
#pragma once

#include "experiment/experiment.hpp"

#include <functional>
#include <string>
#include <vector>

namespace regatta {

// Calls `attempt` for one case after the other; `attempt` throws failure if the case cannot run. Throws one failure
// with every reason once, and its position in the file, if no case can run. Returns at the first case that can run,
// without trying the rest: the campaign later runs every case that can run and skips those that cannot. In a sweep it
// also returns at the first failure that is not a usage error, such as a missing device or a crash, because that fails
// only its own case.
void reject_impossible_experiment(const experiment& e, const std::function<void(const case_config&)>& attempt);

// Returns a notice, with its position in the file, for each of cluster.servers and cluster.colocate that the file or
// the command line sets to another value than the default although no strategy of the experiment uses servers.
// `servers` returns the number of servers of a case, and is called for one case of each strategy; if it throws failure,
// there are no notices.
std::vector<std::string> notices_of_servers(const experiment& e,
                                            const std::function<std::uint64_t(const case_config&)>& servers);

} // namespace regatta
