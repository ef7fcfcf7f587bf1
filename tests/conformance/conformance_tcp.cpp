// SPDX-License-Identifier: Apache-2.0
#include "driver.hpp"

namespace conformance {

// The second one takes every turn early: small chunks, few places, socket buffers that fill at once.
const std::vector<configuration> configurations = {
    {"tcp", REGATTA_PLUGINS "/tcp.so", "tcp", {}},
    {"tcp in small pieces",
     REGATTA_PLUGINS "/tcp.so",
     "tcp",
     {{"chunk", "4096"}, {"depth", "8"}, {"socket_buffer", "8192"}}},
};

} // namespace conformance
