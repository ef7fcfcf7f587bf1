// SPDX-License-Identifier: Apache-2.0
//
// The clocks of this machine, in nanoseconds. All functions are [any] and do not block.
#pragma once

#include <cstdint>

#include <time.h>

namespace rg {

// Returns the time of a POSIX clock. Signed, so that a difference of two times may be negative.
inline std::int64_t read_clock_ns(clockid_t clock) noexcept {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}
// Returns the time of the host's monotonic clock; comparable between the processes of one host.
inline std::int64_t steady_ns() noexcept {
  return read_clock_ns(CLOCK_MONOTONIC);
}
// Returns steady_ns() in the type in which the interface counts time and timeouts (rg_transport.now, poll).
inline std::uint64_t now_ns() noexcept {
  return static_cast<std::uint64_t>(steady_ns());
}
// Returns the CPU time of the calling thread.
inline std::int64_t thread_cpu_ns() noexcept {
  return read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

} // namespace rg
