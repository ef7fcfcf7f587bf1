// SPDX-License-Identifier: Apache-2.0
//
// Reports progress of a test to its parent process. If a call of the plugin hangs, reports stop, and the parent
// notices.
#pragma once

#include <cstdint>

namespace regatta::conformance {

// From now on, report_progress() in this process and in processes that it forks writes to `descriptor`, which must stay
// open: at most one line feed in each fifth of a second. Call it once, before any other thread starts. Does nothing
// if no shared memory can be mapped. [main]
void report_progress_to(int descriptor);

// Reports that a call of the plugin has returned. Does nothing before report_progress_to(). [any]
void report_progress() noexcept;

// Returns a number that grows by 1 with each report_progress() in this process and in those forked after
// report_progress_to(). It is 0 before report_progress_to() and at least 1 afterwards. [any]
std::uint64_t progress_count() noexcept;

// Factor of all time limits: a sanitizer makes plugins several times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t time_limit_factor = 4;
#else
constexpr std::uint64_t time_limit_factor = 1;
#endif

} // namespace regatta::conformance
