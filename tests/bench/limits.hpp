// SPDX-License-Identifier: Apache-2.0
//
// What this machine can do at most, measured plainly, each in the units that the tables beside it use.
#pragma once

#include <cstdint>

namespace regatta::bench {

// One core: multiply and add in registers. FLOP/s.
double fma_peak();
// One core: memcpy of a buffer that no cache holds. Bytes copied a second.
double memory_copy();
// One way over loopback between two processes on two cores, blocking sockets, messages of `bytes`. Bytes a second.
double loopback_tcp(std::uint64_t bytes);

} // namespace regatta::bench
