// SPDX-License-Identifier: Apache-2.0
//
// How ranks connect: one connection per peer and lane, made by the higher rank, and authenticated in both directions
// before any other data. It uses Boost.Asio because many handshakes run at once, under one deadline.
//
//   connecting                               accepting
//     hello {ranks, lane, token, nonce}  ->    closes the connection if it does not expect this rank
//                                        <-    nonce
//     HMAC("connecting", hello, nonce)   ->    closes the connection if the secret is not this run's
//                                        <-    HMAC("accepting", hello, nonce)
//
// Both nonces are random, so that recorded handshakes cannot be replayed. The role is part of the signed data, so that
// a signature cannot be returned to its sender. The token names the listener, so that a connection meant for an earlier
// listener on the same port is rejected. The connecting side proves itself first: strangers get no signature.
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
  descriptor socket;
};

class rendezvous {
public:
  // Listens on an ephemeral port of world.address. `host` must offer "regatta.authenticate/1". `buffer_bytes` is the
  // size of the socket buffers; 0: the kernel's default. `world` must outlive the object. Throws rg::error.
  rendezvous(const rg_host* host, const rg_world& world, std::uint64_t buffer_bytes);
  ~rendezvous();

  // The address of this rank for its peers: "tcp/1 ADDRESS PORT TOKEN", the token in hexadecimal.
  const std::string& blob() const;

  // Makes all connections, sorted by peer, then lane. Throws an rg::error that names the peers that could not be
  // reached or did not connect in time.
  std::vector<link> connect(std::span<const rg_blob> blobs, std::uint64_t timeout_ns);

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace tcp
