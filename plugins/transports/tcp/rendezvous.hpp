// SPDX-License-Identifier: Apache-2.0
//
// How ranks connect: one connection per peer and lane, made by the higher rank, and authenticated in both directions
// before any other data. If ranks have several addresses (rails), connections are spread over them. It uses Boost.Asio
// because many handshakes run at once, under one deadline.
//
//   connecting                               accepting
//     hello {ranks, lane, token, nonce}  ->    closes the connection if it does not expect this rank
//                                        <-    nonce
//     HMAC("connecting", hello, nonce)   ->    closes the connection if the secret is not this run's
//                                        <-    HMAC("accepting", hello, nonce)
//
// Both nonces are random, so that recorded handshakes cannot be replayed. The role is part of the signed data, so that
// a signature cannot be returned to its sender. The token names the listener, so that a connection meant for an earlier
// listener on the same port is rejected. The connecting side proves itself first: an unauthenticated peer gets no
// signature.
#pragma once

#include "descriptor.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tcp {

// A connection after the handshake: non-blocking, with TCP_NODELAY.
struct link {
  std::uint32_t peer, lane;
  std::size_t rail; // index of this rank's address at its end
  descriptor socket;
};

// [main]
class rendezvous {
public:
  // Listens on an ephemeral port of each of world.addresses. `buffer_bytes` is
  // the size of each socket's send and receive buffer; 0: the kernel's default. `host` and `world`, including its list
  // of peers in ascending order, must outlive the object. Throws RG_E_UNSUPPORTED if the host does not offer
  // "regatta.authenticate/1", RG_E_CONFIG if the address is not numeric or cannot be listened on, and RG_E_OPERATION if
  // there are no random numbers.
  rendezvous(const rg_host* host, const rg_world& world, std::uint64_t buffer_bytes);
  ~rendezvous();

  // Returns the addresses of this rank for its peers: "tcp/1 TOKEN ADDRESS PORT ADDRESS PORT ...", the token in
  // hexadecimal. Valid as long as this object.
  const std::string& blob() const;

  // Makes all connections and returns them sorted by peer, then lane; call it once. `blobs` are those of all ranks, by
  // rank. Throws RG_E_PEER, which names the peers, if some have not connected after `timeout_ns` nanoseconds, if one
  // cannot be reached or does not know the run's secret, or if a blob is not of this transport; RG_E_OPERATION if there
  // are no random numbers or the host cannot compute a MAC.
  std::vector<link> connect(std::span<const rg_blob> blobs, std::uint64_t timeout_ns);

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace tcp
