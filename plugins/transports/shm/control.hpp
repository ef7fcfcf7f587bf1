// SPDX-License-Identifier: Apache-2.0
//
// A rank's control memory: all that it shares with its peers besides its heap, which holds its regions (heap.hpp). A
// rank, the owner, makes one; every peer maps it, readable and writable.
//
//   control_header           identification, and the owner's sleep word
//   exposure[most_exposed]   regions of the owner that peers may put into and get from (one_sided.hpp)
//   link[size]               for each rank, the state of its connection to the owner
//   ring[size][lanes + 1]    for each rank, the rings on which the owner sends to it: messages of a lane, and last the
//                            notifications of puts
//
// The last two arrays are indexed by the peer's rank. Entries of ranks that never communicate with the owner are never
// touched, and so take no memory.
#pragma once

#include "ring.hpp"
#include "wake.hpp"

namespace shm {

// The state of one peer's connection to the owner: whether the owner has ended it, and whether the peer is accessing
// the owner's heap. Around each chunk that it reads or writes there, the peer sets and clears `accessing`; between
// setting it and the access it checks that `closed` is not `cancelled`. The owner sets `closed` to `cancelled` and then
// waits until `accessing` is clear or the peer is dead. All accesses are sequentially consistent, so one of the two
// sees the other's store (Dekker's algorithm), and after the wait the peer does not access the owner's heap any more.
struct link_state {
  struct alignas(cache_line) owner_line {
    std::atomic<std::uint32_t> closed; // a value of `closing`
  } owner;
  struct alignas(cache_line) peer_line {
    std::atomic<std::uint32_t> accessing; // 1 while the peer reads or writes a chunk of the owner's heap, else 0
  } peer;
};

enum closing : std::uint32_t {
  open = 0,
  left = 1,     // by close(): the peer can still receive messages sent before, also from the owner's heap
  cancelled = 2 // by cancel(), or the peer broke the protocol: the peer must not access the owner's heap
};

// A region that peers may put into and get from. Written by the owner only.
struct exposure {
  std::atomic<std::uint64_t> id; // no other exposure of the owner has it, ever; 0: the entry is free
  std::uint64_t offset, bytes;   // in the owner's heap; written before `id`
};

// Written by the owner before any peer maps it; only `sleep` changes afterwards.
struct control_header {
  static constexpr std::uint64_t magic = 0x3230'4d48'5347'5200; // "\0RGSHM02", the value of `mark`
  std::uint64_t mark;
  std::uint32_t rank, size, lanes, reserved; // the owner's rank; the number of ranks, and of lanes between two
  std::uint64_t ring_bytes;                  // capacity of each ring
  sleep_word sleep;                          // the owner's: peers wake it here
};

// This process's mapping of its own or a peer's control memory; ends with the object. References and rings that it
// returns are valid until then.
class control_area {
public:
  control_area() = default;
  // Makes this rank's own control memory, zeroed except for the header. `ring_bytes` is the capacity of each ring: a
  // multiple of cache_line, at least smallest_ring. Throws rg::error (RG_E_OPERATION) if the system refuses.
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
  // Maps the control memory of the peer `rank`; `fd` may be closed afterwards. Checks its size and header, so that no
  // later access leaves the mapping. Throws rg::error: RG_E_PEER if `fd` is not control memory of that rank and of this
  // version, RG_E_CONFIG if the number of ranks or lanes differs, RG_E_OPERATION if it cannot be mapped.
  control_area(const file_descriptor& fd, std::uint32_t rank, std::uint32_t size, std::uint32_t lanes)
      : size_(size), lanes_(lanes), memory_(fd, sealed_size(fd), "a peer's control memory") {
    const std::string who = "shm: rank " + std::to_string(rank);
    if (memory_.bytes() < sizeof(control_header) || header().mark != control_header::magic || header().rank != rank)
      throw rg::error(RG_E_PEER, who + " runs another version of this transport: use one build on all ranks");
    if (header().size != size || header().lanes != lanes)
      throw rg::error(RG_E_CONFIG, who + ": expected " + std::to_string(size) + " ranks and " + std::to_string(lanes) +
                                       " lanes, got " + std::to_string(header().size) + " and " +
                                       std::to_string(header().lanes));
    ring_bytes_ = header().ring_bytes;
    if (ring_bytes_ < smallest_ring || ring_bytes_ % cache_line != 0 || ring_bytes_ > memory_.bytes() || !holds_rings())
      throw rg::error(RG_E_PEER, who + " sent control memory of a wrong size");
  }

  static constexpr std::uint64_t smallest_ring = 4096; // bytes
  static constexpr std::uint32_t most_exposed = 1024;

  control_header& header() const noexcept { return *reinterpret_cast<control_header*>(memory_.base()); }
  // Entry `slot` of the owner's exposed regions; below most_exposed.
  exposure& exposed(std::uint32_t slot) const noexcept {
    return reinterpret_cast<exposure*>(memory_.base() + sizeof(control_header))[slot];
  }
  // The state of the connection of `rank` to the owner.
  link_state& link(std::uint32_t rank) const noexcept {
    return reinterpret_cast<link_state*>(memory_.base() + bytes_before_links)[rank];
  }
  // Returns one end of a ring on which the owner sends to `rank`: of a lane, or of notifications if `lane` is the
  // number of lanes. `End` is ring_producer in the owner's process, and ring_consumer in that of `rank`. Each call
  // returns an end that stands at the start of the ring, so call it once per end.
  template <class End> End ring(std::uint32_t rank, std::uint32_t lane) const noexcept {
    std::byte* at = memory_.base() + bytes_before_rings() +
                    (std::uint64_t{rank} * (lanes_ + 1) + lane) * (sizeof(ring_state) + ring_bytes_);
    return End(reinterpret_cast<ring_state*>(at), at + sizeof(ring_state), ring_bytes_);
  }
  // The descriptor of this rank's own control memory, to be sent to peers; empty if this is a peer's.
  const file_descriptor& descriptor() const noexcept { return descriptor_; }

private:
  static constexpr std::uint64_t bytes_before_links = sizeof(control_header) + most_exposed * sizeof(exposure);
  std::uint64_t bytes_before_rings() const noexcept { return bytes_before_links + size_ * sizeof(link_state); }
  std::uint64_t rings() const noexcept { return std::uint64_t{size_} * (lanes_ + 1); }
  std::uint64_t total_bytes() const noexcept {
    return bytes_before_rings() + rings() * (sizeof(ring_state) + ring_bytes_);
  }
  // Whether all rings lie within the mapping. Divides, because total_bytes() can overflow for a peer's ring_bytes.
  bool holds_rings() const noexcept {
    const std::uint64_t before = bytes_before_rings();
    return before <= memory_.bytes() && rings() <= (memory_.bytes() - before) / (sizeof(ring_state) + ring_bytes_);
  }

  std::uint32_t size_ = 0, lanes_ = 0;
  std::uint64_t ring_bytes_ = 0;
  file_descriptor descriptor_;
  mapping memory_;
};

} // namespace shm
