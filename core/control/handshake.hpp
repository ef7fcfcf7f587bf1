// SPDX-License-Identifier: Apache-2.0
//
// Mutual proof that both ends know the run's secret, before either believes anything else the other says:
//
//   coordinator -> rank          nonce_c                              4 bytes of magic, 32 bytes
//   rank        -> coordinator   rank, nonce_r, proof of the rank     4 bytes little endian, 32 bytes, 32 bytes
//   coordinator -> rank          proof of the coordinator             32 bytes
//
// where a proof is HMAC-SHA-256(secret, role | nonce_c | nonce_r | rank). The role's name is in it so that neither
// end's answer can be reflected as the other's; all messages have a fixed length, so a stranger cannot make us
// allocate.
#pragma once

#include "control/asio.hpp"
#include "control/blob.hpp"

namespace regatta {

// The coordinator's side: returns the rank that has proven itself. Throws failure for a stranger, system_error when the
// connection ends. The caller bounds the time by closing the socket, which it does not do any more once `proven` is
// true: the rank's proof is good. `secret` and `proven` outlive the coroutine.
asio::awaitable<std::uint32_t> admit_rank(tcp::socket& socket, const blob& secret, bool& proven);

// The rank's side, likewise.
asio::awaitable<void> prove_rank(tcp::socket& socket, const blob& secret, std::uint32_t rank);

} // namespace regatta
