// SPDX-License-Identifier: Apache-2.0
#include "driver.hpp"

namespace conformance {

const std::vector<configuration> configurations = {
    {"shaped over tcp", REGATTA_PLUGINS "/shaped.so", "shaped", {{"bandwidth", "20e9"}, {"latency", "20000"}}},
    {"shaped over shm",
     REGATTA_PLUGINS "/shaped.so",
     "shaped",
     {{"over", "\"shm\""}, {"bandwidth", "100e9"}, {"jitter", "50000"}, {"quantum", "10000"}}},
};

} // namespace conformance
