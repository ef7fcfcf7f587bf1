// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simulate/machine_file.hpp"

#include <map>
#include <string>

namespace regatta {

// [any] Returns the link between two hosts from messages between one rank on each ("send" of a stored result of
// `regatta comm`; `given` is its file): the rate at which large messages go, and the latency that small ones have beyond
// what they cost on one host, `costs` by transport, without `in_training`. Throws failure: (usage) if it is no such
// result, or has another number of hosts, or sends of a transport without costs, or no small or no large ones; (run)
// if the fit is bad.
machine_file::network read_measured_network(const std::string& given,
                                            const std::map<std::string, message_costs>& costs);

} // namespace regatta
