// SPDX-License-Identifier: Apache-2.0
//
// Checks of an experiment that run before any rank starts, and need plugins, data or hosts beside its file.
#pragma once

#include "config/experiment.hpp"

#include <functional>
#include <string>
#include <vector>

namespace regatta {

// Throws failure if no case can run, with every reason once and its position in the file. `attempt` throws failure if a
// case cannot run. If at least one case of a sweep can run, nothing is thrown: the campaign skips the others.
void refuse_hopeless(const experiment& e, const std::function<void(const case_config&)>& attempt);

// Returns notices for the keys about servers that are given although no strategy has servers. `servers` returns the
// number of servers of a case; if it throws failure, no notice is returned.
std::vector<std::string> notices_of_servers(const experiment& e,
                                            const std::function<std::uint64_t(const case_config&)>& servers);

} // namespace regatta
