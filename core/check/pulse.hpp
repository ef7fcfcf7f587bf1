// SPDX-License-Identifier: Apache-2.0
//
// Progress of a test, told to the process that waits for it: a call of the plugin that never comes back is noticed
// because nothing more is told.
#pragma once

#include <cstdint>

namespace regatta::conformance {

// One line feed goes to `descriptor` for every fifth of a second with progress, from this process and from those forked
// after the call. [main], once, before any thread
void tell_pulse_to(int descriptor);

// A call of the plugin came back. Does nothing before tell_pulse_to(). [any]
void pulse() noexcept;

// Grows with each of this process and of those forked after tell_pulse_to(); 0 where none are told. [any]
std::uint64_t pulses() noexcept;

// A sanitizer slows plugins down several times.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t slower = 4;
#else
constexpr std::uint64_t slower = 1;
#endif

} // namespace regatta::conformance
