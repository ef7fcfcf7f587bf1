// SPDX-License-Identifier: Apache-2.0
//
// Checks of an experiment before anything starts that need more than its file: plugins, data, hosts.
#pragma once

#include "config/experiment.hpp"

#include <functional>
#include <string>
#include <vector>

namespace regatta {

// `attempt` throws failure for what is wrong with a case. Throws where no case can run: all reasons, each once and with
// its place in the file. A sweep of which some case can run is left alone: the others are skipped one by one.
void refuse_hopeless(const experiment& e, const std::function<void(const case_config&)>& attempt);

// Notices of the keys about servers, where they are given and no strategy has servers. `servers`: how many a case has;
// what it throws is for others to say.
std::vector<std::string> notices_of_servers(const experiment& e,
                                            const std::function<std::uint64_t(const case_config&)>& servers);

} // namespace regatta
