// SPDX-License-Identifier: Apache-2.0
//
// Both ends prove to each other that they know the run's secret, before either accepts any other message:
//
//   coordinator -> rank          nonce_c                              4 bytes of magic, 32 bytes
//   rank        -> coordinator   rank, nonce_r, proof of the rank     4 bytes little endian, 32 bytes, 32 bytes
//   coordinator -> rank          proof of the coordinator             32 bytes
//
// where a proof is HMAC-SHA-256(secret, role | nonce_c | nonce_r | rank). It contains the name of the role, so that
// neither side's answer can be reflected as the other's. All messages have a fixed length, so a connection that is not
// proven cannot cause large allocations.
#pragma once

#include <span>

#include "base/failure.hpp"
#include "control/asio.hpp"
#include "control/blob.hpp"

namespace regatta {

// The other side has not accepted the proof: its secret is another one, or it ended at that moment.
class proof_refused : public failure {
public:
  using failure::failure;
};

struct proven_rank {
  std::uint32_t number = 0; // the caller checks that the run has such a rank
  std::size_t secret = 0;   // index of the secret that it knows
};

// The coordinator's side; the other side must know one of `secrets`. Throws failure (run) if it does not,
// boost::system::system_error if the connection ends. Sets `proven` once the rank's proof is valid. Until then the
// caller may close the socket to limit the time; afterwards it must not. `socket`, `secrets` and `proven` must outlive
// the coroutine.
asio::awaitable<proven_rank> admit_rank(tcp::socket& socket, std::span<const blob> secrets, bool& proven);

// The rank's side; `rank` is its number. Throws failure (run) if the other side is no coordinator of this version or
// does not know the secret, proof_refused if it ends the connection after the rank's proof,
// boost::system::system_error if the connection ends before. `socket` and `secret` must outlive the coroutine.
asio::awaitable<void> prove_rank(tcp::socket& socket, const blob& secret, std::uint32_t rank);

} // namespace regatta
