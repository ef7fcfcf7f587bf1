// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

namespace regatta {

// Measures the operations of strategies on this machine, on one thread, with buffers that do not fit into its caches:
// returns ns for each byte that one reads or writes, by the names of timed_operations(). Without the optimizer's and
// those of sparse tables, which a training step shows. Takes about a second. [main]
std::map<std::string, double> measure_operations();

} // namespace regatta
