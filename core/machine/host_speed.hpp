// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

namespace regatta {

// The rates of all CPUs of a host together.
struct host_speed {
  double fma = 0;       // multiply-adds in registers, FLOP/s
  double copy = 0;      // copies of 16 MiB by at most 32 threads: copied bytes/s, each counted once
  double cpu_share = 0; // CPU time that the threads got, of the time that they ran: below 1, others had their CPUs
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(host_speed, fma, copy, cpu_share)

// [main] Measures with `threads` threads, which are not pinned. Takes about 0.4 s: some periods of a CPU quota, which
// are 100 ms, so that the quota shows in the rates. Other load shows, too. Throws std::system_error if a thread cannot
// be started, and std::bad_alloc.
host_speed measure_host_speed(unsigned threads);

} // namespace regatta
