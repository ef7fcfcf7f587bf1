// SPDX-License-Identifier: Apache-2.0
//
// Limits of this machine, measured with simple loops, in the units of the tables beside them.
#pragma once

#include <cstdint>

namespace regatta::bench {

// One core: multiply and add in registers. FLOP/s.
double fma_peak();
// One core: memcpy of a buffer that no cache holds. Bytes copied a second.
double memory_copy();
// One way over loopback between two processes on two cores, blocking sockets, messages of `bytes`. Bytes a second.
double loopback_tcp(std::uint64_t bytes);

// Seconds that a[i] += b[i] takes over two arrays of so many bytes, one core, the best of several.
double add_arrays(std::uint64_t bytes);

// Seconds that 8 bytes take one way, as half of there and back (median), between two processes on two cores: over
// loopback TCP, sleeping in recv or polling it, and through a cache line of shared memory.
double ping_pong_tcp(bool spin);
double ping_pong_memory();

} // namespace regatta::bench
