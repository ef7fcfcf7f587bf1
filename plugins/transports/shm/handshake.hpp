// SPDX-License-Identifier: Apache-2.0
//
// How ranks meet: over an abstract Unix socket (it has no file that could stay behind) with a random name, which
// travels in the blob. Of two peers the higher rank connects. Nobody gets a descriptor before it has proved that it
// belongs to the run, by the mac that the host makes of both sides' random challenges; strangers, and other users by
// their credentials, are turned away without disturbing the rest.
//
//   higher rank                               lower rank
//     hello {ranks, nonce}            ->
//                                     <-        reply {nonce, mac}
//     proof {mac} + descriptors       ->
//                                     <-        welcome + descriptors
//
// Packets, not a stream: each arrives whole or not at all. The sockets stay open, since the kernel closes them when a
// process ends, however it ends: so the death of a peer is seen.
#pragma once

#include "memory.hpp"

#include <array>
#include <span>
#include <vector>

namespace shm {

// What a peer handed us.
struct acquaintance {
  std::uint32_t rank;
  file_descriptor socket; // non-blocking, SOCK_SEQPACKET
  file_descriptor control, heap;
};

// [main]
class meeting_place {
public:
  meeting_place(const rg_host* host, const rg_world& world);

  rg_blob blob() const noexcept { return {&card_, sizeof card_}; }
  // All peers of `world`, in any order. Throws, naming who is missing, when `timeout_ns` have passed or a peer is lost.
  std::vector<acquaintance> meet(const rg_world& world, std::span<const rg_blob> blobs, std::uint64_t timeout_ns,
                                 const file_descriptor& control, const file_descriptor& heap);

private:
  struct card { // what is in a blob
    std::array<char, 8> mark;
    std::array<char, 32> name;
    std::uint32_t rank, size;
  };

  const rg_host* host_;
  const rg_authenticate* authenticate_ = nullptr;
  card card_{};
  file_descriptor listener_;
};

} // namespace shm
