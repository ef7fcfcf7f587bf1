// SPDX-License-Identifier: Apache-2.0
//
// A rank's control memory: all that it shares with its peers besides the heap. Its owner makes it, and every peer maps
// it.
//
//   control_header    identification, and the owner's sleep word
//   link[size]        for each rank, the state of its connection to the owner
//   ring[size][lanes] for each rank, the rings on which the owner sends to it
//
// Indexed by rank. Entries of ranks that never communicate are never touched, and so take no memory.
#pragma once

#include "ring.hpp"
#include "wake.hpp"

namespace shm {

// How a peer reads the owner's heap, and how the owner ends that. Before each chunk the reader sets `reading` and then
// reads `closed`. The owner sets `closed` and then waits until `reading` is clear (Dekker, as in wake.hpp). From then
// on the reader does not touch the owner's heap any more.
struct link_state {
  struct alignas(cache_line) owner_line {
    std::atomic<std::uint32_t> closed; // a value of `closing`
  } owner;
  struct alignas(cache_line) peer_line {
    std::atomic<std::uint32_t> reading; // the peer is reading the owner's heap
  } peer;
};

enum closing : std::uint32_t {
  open = 0,
  left = 1,     // by close(): messages sent before can still be received
  cancelled = 2 // by cancel(): the owner's memory must not be touched
};

struct control_header {
  static constexpr std::uint64_t magic = 0x3130'4d48'5347'5200; // "\0RGSHM01"
  std::uint64_t mark;
  std::uint32_t rank, size, lanes, reserved;
  std::uint64_t ring_bytes;
  sleep_word sleep;
};

class control_area {
public:
  control_area() = default;
  // Makes this rank's own control memory.
  control_area(std::uint32_t rank, std::uint32_t size, std::uint32_t lanes, std::uint64_t ring_bytes)
      : size_(size), lanes_(lanes), ring_bytes_(ring_bytes),
        descriptor_(make_sealed_memory("regatta-control", total_bytes())),
        memory_(descriptor_, total_bytes(), "the control memory") {
    control_header& h = header();
    h.mark = control_header::magic;
    h.rank = rank;
    h.size = size;
    h.lanes = lanes;
    h.ring_bytes = ring_bytes;
  }
  // Maps a peer's control memory. Checks all that the peer wrote, so that no later access leaves the mapping.
  control_area(const file_descriptor& fd, std::uint32_t rank, std::uint32_t size, std::uint32_t lanes)
      : size_(size), lanes_(lanes), memory_(fd, sealed_size(fd), "a peer's control memory") {
    const std::string who = "shm: rank " + std::to_string(rank);
    if (memory_.bytes() < sizeof(control_header) || header().mark != control_header::magic || header().rank != rank)
      throw rg::error(RG_E_PEER, who + " runs another version of this transport");
    if (header().size != size || header().lanes != lanes)
      throw rg::error(RG_E_CONFIG, who + " takes part in a world of " + std::to_string(header().size) + " ranks and " +
                                       std::to_string(header().lanes) + " lanes, this one in " + std::to_string(size) +
                                       " and " + std::to_string(lanes));
    ring_bytes_ = header().ring_bytes;
    if (ring_bytes_ < smallest_ring || ring_bytes_ % cache_line != 0 || ring_bytes_ > memory_.bytes() || !holds_rings())
      throw rg::error(RG_E_PEER, who + " sent control memory of a wrong size");
  }

  static constexpr std::uint64_t smallest_ring = 4096;

  control_header& header() const noexcept { return *reinterpret_cast<control_header*>(memory_.base()); }
  link_state& link(std::uint32_t rank) const noexcept {
    return reinterpret_cast<link_state*>(memory_.base() + sizeof(control_header))[rank];
  }
  // One end of the ring on which the owner sends to `rank`.
  template <class End> End ring(std::uint32_t rank, std::uint32_t lane) const noexcept {
    std::byte* at = memory_.base() + bytes_before_rings() +
                    (std::uint64_t{rank} * lanes_ + lane) * (sizeof(ring_state) + ring_bytes_);
    return End(reinterpret_cast<ring_state*>(at), at + sizeof(ring_state), ring_bytes_);
  }
  const file_descriptor& descriptor() const noexcept { return descriptor_; }

private:
  std::uint64_t bytes_before_rings() const noexcept { return sizeof(control_header) + size_ * sizeof(link_state); }
  std::uint64_t total_bytes() const noexcept {
    return bytes_before_rings() + std::uint64_t{size_} * lanes_ * (sizeof(ring_state) + ring_bytes_);
  }
  // Whether all rings lie within the mapping. Divides, because total_bytes() can overflow for a peer's ring_bytes.
  bool holds_rings() const noexcept {
    const std::uint64_t before = bytes_before_rings();
    return before <= memory_.bytes() &&
           std::uint64_t{size_} * lanes_ <= (memory_.bytes() - before) / (sizeof(ring_state) + ring_bytes_);
  }

  std::uint32_t size_ = 0, lanes_ = 0;
  std::uint64_t ring_bytes_ = 0;
  file_descriptor descriptor_; // own memory only: is sent to peers
  mapping memory_;
};

} // namespace shm
