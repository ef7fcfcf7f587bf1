// SPDX-License-Identifier: Apache-2.0
//
// One-time codes by which hosts without a launcher join a launch (`regatta run --wait-for`, `regatta join`): 16 letters
// and digits, 80 random bits, such as "K7QF-2MXD-9RTC-H4WN". Each host has a code of its own, the secret of its
// handshake (control/handshake.hpp); then the coordinator sends it the launch's secret, encrypted under the code.
#pragma once

#include <string>

#include "control/blob.hpp"

namespace regatta {

// Returns a new code.
std::string make_code();

// Returns the secret of a handshake from a code as a person types it: case, spaces and hyphens do not count. Throws
// failure (usage) if it has not 16 letters and digits, or one of I, L, O and U, which no code has.
blob secret_of_code(const std::string& typed);

// Encrypts the launch's secret of 32 bytes under the secret of a code, or decrypts it: both are the same operation.
// Each code must be used by one host in one launch only, and `nonce` be random.
blob under_code(const blob& secret_of_code, const blob& nonce, const blob& launch_secret);

} // namespace regatta
