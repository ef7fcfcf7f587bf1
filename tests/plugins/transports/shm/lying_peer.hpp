// SPDX-License-Identifier: Apache-2.0
//
// A rank of the shm transport, and in the same process the memory of its peer, which says anything.
#pragma once

#include "peer.hpp"

#include <array>
#include <memory>
#include <utility>

#include <sys/socket.h>

namespace shm {

class lying_peer {
public:
  static constexpr std::uint64_t ring_bytes = 16 << 10;

  static constexpr std::uint32_t lanes = 2;

  // `own` is the number of the honest rank, 0 or 1, and `own_ring` the bytes of its rings; the peer has the other number.
  explicit lying_peer(std::uint32_t own = 0, std::uint64_t own_ring = ring_bytes)
      : other(1 - own), control(other, 2, lanes, ring_bytes) {
    host_.struct_size = sizeof host_;
    host_.log = [](void*, std::int32_t, const char*) {};
    host_.fail = [](void*, rg_status status, const char*) { return status; };
    host_.extension = [](void*, const char*) -> const void* { return nullptr; };
    home.rank = own;
    home.size = 2;
    home.lanes = lanes;
    home.eager = 1024;
    home.control = control_area(own, 2, lanes, own_ring);
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
      throw std::runtime_error("no pair of sockets");
    other_end_ = file_descriptor(ends[1]);
    home.peers.resize(2);
    home.peers[other] = std::make_unique<peer>(
        home, other, file_descriptor(ends[0]), control_area(control.descriptor(), other, 2, lanes),
        mapping(heap_.descriptor(), sealed_size(heap_.descriptor()), "the heap of the peer"));
    for (std::uint32_t lane = 0; lane < lanes; ++lane) out[lane] = control.ring<ring_producer>(own, lane);
    in = home.control.ring<ring_consumer>(other, 0);
  }

  peer& rank() { return *home.peers[other]; }
  // A record that says so much, wherever it is next looked for. False: the ring is full.
  bool say(std::uint16_t kind, std::uint64_t total, std::uint64_t offset_or_waits, std::uint32_t bytes,
           std::uint32_t lane = 0) {
    out[lane].look();
    record* r = out[lane].reserve(0);
    if (!r) return false;
    r->kind = kind;
    r->total = total;
    r->offset = offset_or_waits;
    r->bytes = bytes;
    out[lane].publish_with_payload(r, 0);
    return true;
  }
  // A packet on the socket of the handshake.
  bool send(const void* packet, std::size_t bytes) {
    return ::send(other_end_.get(), packet, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
  }
  void hang_up() { other_end_ = file_descriptor(-1); }
  static rg_transfer transfer(const void* address, std::uint64_t cookie, bool adds = false) {
    rg_transfer t{};
    t.address = const_cast<void*>(address);
    t.cookie = cookie;
    t.flags = adds ? std::uint32_t{RG_TRANSFER_ADD} : 0;
    return t;
  }
  // The status of the first completion that is there, or RG_AGAIN.
  rg_status completed() {
    if (home.completions.empty()) return RG_AGAIN;
    const rg_status status = home.completions.front().status;
    home.completions.pop_front();
    return status;
  }

private:
  rg_host host_{};
  heap heap_{1 << 20};
  file_descriptor other_end_{-1};

public:
  instance_state home{&host_, 1 << 20};
  const std::uint32_t other;
  control_area control;                 // the peer's
  std::array<ring_producer, lanes> out; // of what the peer says
  ring_consumer in;                     // of what it is told on lane 0
};

} // namespace shm
