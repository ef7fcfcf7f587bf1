// SPDX-License-Identifier: Apache-2.0
//
// The handshake between ranks. Each rank listens on an abstract Unix socket (which leaves no file behind) with a random
// name, which its blob carries. Of two peers the higher rank connects. A rank sends its descriptors only after the peer
// has proved that it belongs to the run, by a MAC that the host computes over both sides' random challenges. Strangers,
// and other users by their credentials, are rejected without disturbing other connections.
//
//   higher rank                               lower rank
//     hello {both ranks, nonce}       ->
//                                     <-        reply {nonce, mac}
//     proof {mac} + descriptors       ->
//                                     <-        welcome + descriptors
//
// Packets, not a stream: each arrives whole or not at all. The sockets stay open: the kernel closes them when a process
// ends, in whatever way, and so a peer's death is detected.
#pragma once

#include "memory.hpp"

#include <array>
#include <span>
#include <vector>

#include <regatta/ext/authenticate.h>

namespace shm {

// The result of a handshake: a peer, and the descriptors that it sent.
struct connected_peer {
  std::uint32_t rank;
  file_descriptor socket; // non-blocking, SOCK_SEQPACKET
  file_descriptor control, heap;
};

// [main] A rank's listening socket, and the handshakes with all its peers.
class rendezvous {
public:
  // Listens, if `world` has peers; `host` must outlive this object. Throws RG_E_UNSUPPORTED if there are peers and the
  // host does not offer RG_EXT_AUTHENTICATE, RG_E_OPERATION if there can be no socket or there are no random numbers.
  rendezvous(const rg_host* host, const rg_world& world);

  // Returns the data with which peers find this rank; valid as long as this object.
  rg_blob blob() const noexcept { return {&card_, sizeof card_}; }
  // Connects with all peers of `world` and returns them in any order; then stops listening, so call it once. `blobs`
  // are those of all ranks, by rank. `control` and `heap` are this rank's, which the peers get. Throws RG_E_PEER if a
  // peer's blob is wrong, if a lower rank breaks off the handshake, and, naming the missing ranks, after `timeout_ns`
  // nanoseconds (at most a day). A higher rank that breaks off is only noticed then: a stranger could do the same.
  // Throws RG_E_OPERATION if there are no random numbers or a socket cannot be made, and the status of the host if it
  // cannot compute a MAC.
  std::vector<connected_peer> connect(const rg_world& world, std::span<const rg_blob> blobs, std::uint64_t timeout_ns,
                                      const file_descriptor& control, const file_descriptor& heap);

private:
  struct card { // the contents of a blob
    std::array<char, 8> mark;
    std::array<char, 32> name;
    std::uint32_t rank, size; // of this rank, and of the world
  };

  const rg_host* host_;
  const rg_authenticate* authenticate_ = nullptr;
  card card_{};
  file_descriptor listener_;
};

} // namespace shm
