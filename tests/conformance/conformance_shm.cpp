// SPDX-License-Identifier: Apache-2.0
#include "driver.hpp"

namespace conformance {

// The second one takes every turn early: rings that fill at once, and hardly a message that fits a record.
const std::vector<configuration> configurations = {
    {"shm", REGATTA_PLUGINS "/shm.so", "shm", {}},
    {"shm in small pieces",
     REGATTA_PLUGINS "/shm.so",
     "shm",
     {{"ring", "16384"}, {"eager", "100"}, {"heap", "8589934592"}}},
};

} // namespace conformance
