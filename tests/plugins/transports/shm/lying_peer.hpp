// SPDX-License-Identifier: Apache-2.0
//
// A rank of the shm transport, and in the same process the memory of its peer, which says anything.
#pragma once

#include "peer.hpp"

#include <memory>
#include <utility>

#include <sys/socket.h>

namespace shm {

class lying_peer {
public:
  static constexpr std::uint64_t ring_bytes = 16 << 10;

  lying_peer() {
    host_.struct_size = sizeof host_;
    host_.log = [](void*, std::int32_t, const char*) {};
    host_.fail = [](void*, rg_status status, const char*) { return status; };
    host_.extension = [](void*, const char*) -> const void* { return nullptr; };
    home.rank = 0;
    home.size = 2;
    home.lanes = 1;
    home.eager = 1024;
    home.control = control_area(0, 2, 1, ring_bytes);
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw std::runtime_error("no pair of sockets");
    other_end_ = file_descriptor(ends[1]);
    home.peers.resize(2);
    home.peers[1] =
        std::make_unique<peer>(home, 1, file_descriptor(ends[0]), control_area(control.descriptor(), 1, 2, 1),
                               mapping(heap_.descriptor(), sealed_size(heap_.descriptor()), "the heap of the peer"));
    out = control.ring<ring_producer>(0, 0);
    in = home.control.ring<ring_consumer>(1, 0);
  }

  peer& rank() { return *home.peers[1]; }
  // A record that says so much, wherever it is next looked for. False: the ring is full.
  bool say(std::uint16_t kind, std::uint64_t total, std::uint64_t offset_or_waits, std::uint32_t bytes) {
    out.look();
    record* r = out.reserve(0);
    if (!r) return false;
    r->kind = kind;
    r->total = total;
    r->offset = offset_or_waits;
    r->bytes = bytes;
    out.publish_with_payload(r, 0);
    return true;
  }
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
  station home{&host_, 1 << 20};
  control_area control{1, 2, 1, ring_bytes}; // the peer's
  ring_producer out;                         // of what the peer says
  ring_consumer in;                          // of what it is told
};

} // namespace shm
