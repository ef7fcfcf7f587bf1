// SPDX-License-Identifier: Apache-2.0
//
// Reports progress of a test to its parent process. If a call of the plugin hangs, reports stop, and the parent
// notices.
#pragma once

#include <cstdint>

namespace regatta::conformance {

// Writes one line feed to `descriptor` for every fifth of a second with progress, of this process and of processes that
// it forks afterwards. Call it once, before any thread starts. [main]
void tell_pulse_to(int descriptor);

// Reports that a call of the plugin has returned. Does nothing before tell_pulse_to(). [any]
void pulse() noexcept;

// Returns a counter of pulse() calls in this process and in those forked after tell_pulse_to(); 0 before that call.
// [any]
std::uint64_t pulses() noexcept;

// A sanitizer makes plugins several times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t slower = 4;
#else
constexpr std::uint64_t slower = 1;
#endif

} // namespace regatta::conformance
