// SPDX-License-Identifier: Apache-2.0
//
// The cryptographic functions that authenticate the ranks of a run, over OpenSSL's libcrypto. All functions are [any];
// random_bytes() and hmac_sha256() throw failure (run) if OpenSSL fails.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>

#include "control/blob.hpp"

namespace regatta {

using digest = std::array<std::uint8_t, 32>;
using bytes_view = std::span<const std::uint8_t>;

// Returns cryptographically secure random bytes (RAND_bytes).
blob random_bytes(std::size_t count);

// Returns the HMAC-SHA-256 (RFC 2104) of the concatenated parts. For the concatenation to be unambiguous, the caller
// must give all parts but one a fixed length.
digest hmac_sha256(bytes_view key, std::initializer_list<bytes_view> parts);

// Returns whether both have the same length and bytes. For equal lengths the time does not depend on where the
// arguments differ, so that a forger learns nothing from it.
bool equal_in_constant_time(bytes_view a, bytes_view b) noexcept;

// Returns a view of the text's bytes, without the terminating zero.
bytes_view bytes_of(const char* text) noexcept;

} // namespace regatta
