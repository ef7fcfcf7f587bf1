// SPDX-License-Identifier: Apache-2.0
//
// Reports progress of a test to its parent process. If a call of the plugin hangs, reports stop, and the parent
// notices.
#pragma once

#include <cstdint>

namespace regatta::conformance {

// From now on, pulse() in this process and in processes that it forks writes to `descriptor`, which must stay open: at
// most one line feed in each fifth of a second. Call it once, before any other thread starts. [main]
void tell_pulse_to(int descriptor);

// Reports that a call of the plugin has returned. Does nothing before tell_pulse_to(). [any]
void pulse() noexcept;

// Returns a number that grows by 1 with each pulse() in this process and in those forked after tell_pulse_to(). It is 0
// before tell_pulse_to() and at least 1 afterwards. [any]
std::uint64_t pulses() noexcept;

// Factor of all time limits: a sanitizer makes plugins several times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t slower = 4;
#else
constexpr std::uint64_t slower = 1;
#endif

} // namespace regatta::conformance
