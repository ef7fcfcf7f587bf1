// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <time.h>

namespace regatta {

inline std::int64_t read_clock_ns(clockid_t clock) noexcept {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}
// Nanoseconds of the host's monotonic clock; comparable between the ranks of one host.
inline std::int64_t steady_ns() noexcept {
  return read_clock_ns(CLOCK_MONOTONIC);
}
// Nanoseconds of CPU time of the calling thread.
inline std::int64_t thread_cpu_ns() noexcept {
  return read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

} // namespace regatta
