// SPDX-License-Identifier: Apache-2.0
//
// How ranks find each other: one connection for each peer and lane, made by the higher rank to the lower one, and
// proven from both ends before anything else is said. Over Boost.Asio: many handshakes go on at once, under one
// deadline.
//
//   connecting                               accepting
//     hello {ranks, lane, token, nonce}  ->    drops whoever was not expected
//                                        <-    nonce
//     HMAC("connecting", hello, nonce)   ->    drops whoever does not know the run's secret
//                                        <-    HMAC("accepting", hello, nonce)
//
// Both nonces are random, so nothing heard before can be said again; the roles are part of what is signed, so an answer
// cannot be sent back to who asked. The token names the listener: what was meant for another one on the same port is
// refused. Whoever connects proves himself first: strangers get no signature.
#pragma once

#include "descriptor.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tcp {

// A connection as it leaves the handshake: non-blocking, without Nagle's delay.
struct link {
  std::uint32_t peer, lane;
  descriptor socket;
};

class rendezvous {
public:
  // Listens on an ephemeral port of world.address. `host` must offer "regatta.authenticate/1". `buffer_bytes`: size of
  // the socket buffers, 0: as the kernel thinks fit. Throws rg::error.
  rendezvous(const rg_host* host, const rg_world& world, std::uint64_t buffer_bytes);
  ~rendezvous();

  // Where this rank listens, for its peers: "tcp/1 ADDRESS PORT TOKEN", the token in hexadecimal.
  const std::string& blob() const;

  // Makes all connections. Throws rg::error naming the peers that could not be reached, or did not come in time.
  std::vector<link> connect(std::span<const rg_blob> blobs, std::uint64_t timeout_ns);

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace tcp
