// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/descriptor.hpp"

namespace regatta {

// Returns what this program is: value by name of each property that should be equal in all processes of a launch.
// Throws failure (plugin) if the program's file cannot be read. [any]
nlohmann::json describe_this_program();

// Returns what an agent tells the coordinator about its host: "host" (its name), "who" (describe_this_program()),
// "cpus" and "limit" (cpu_supply; null: no limit), "free_bytes" (available_bytes()), "address" and "peer" (numeric, of
// this and the other end of the connection `coordinator`; "": unknown), and "description" (machine/host.hpp). [any]
nlohmann::json describe_this_host(const unique_fd& coordinator);

// Compares the properties of hosts or processes, at least one, with those of the first. Returns a newline and a table
// with a column for each and a row for each property that differs; empty: all are equal. `names` head the columns.
std::string differences_of_hosts(const std::vector<std::string>& names, const std::vector<nlohmann::json>& who);

// Returns a warning for each property of hosts that makes them unequal machines (CPU model, clock, cores, memory by 2 %
// or more, CPU quota, governor, kernel, libraries), with the values of the first host and of the first one that
// differs.
std::vector<std::string> unequal_machines(const std::vector<std::string>& names,
                                          const std::vector<nlohmann::json>& descriptions);

// Returns a warning if the hosts' lists of libraries differ, with what the first host and the first other one have for
// themselves; empty: all are equal. The lists are sorted.
std::string unequal_libraries(const std::vector<std::string>& names, const std::vector<nlohmann::json>& libraries);

} // namespace regatta
