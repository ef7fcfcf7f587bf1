// SPDX-License-Identifier: Apache-2.0
//
// The little cryptography that membership of a run needs, over OpenSSL's libcrypto. All functions: any thread.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>

#include "control/blob.hpp"

namespace regatta {

using digest = std::array<std::uint8_t, 32>;
using bytes_view = std::span<const std::uint8_t>;

// Bytes nobody can guess (RAND_bytes). Throws failure when the machine has none.
blob random_bytes(std::size_t count);

// HMAC-SHA-256 (RFC 2104) over the parts, one after the other. The caller keeps the concatenation unambiguous: all
// parts but one are of fixed length.
digest hmac_sha256(bytes_view key, std::initializer_list<bytes_view> parts);

// In a time that does not depend on where they differ, so that a forger learns nothing from it.
bool equal_in_constant_time(bytes_view a, bytes_view b) noexcept;

// The text's bytes, without a terminating zero.
bytes_view bytes_of(const char* text) noexcept;

} // namespace regatta
