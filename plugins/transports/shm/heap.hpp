// SPDX-License-Identifier: Apache-2.0
//
// A rank's heap: one sparse memfd that every peer maps as a whole when it connects. Regions are allocated from it, so
// that {offset, bytes} is all that a peer needs to reach a buffer, whether allocated before or after connecting.
#pragma once

#include "memory.hpp"

#include <map>

namespace shm {

// [main] and [loop]: regions are allocated and freed in both, scratch of collectives in [loop] only.
class heap {
public:
  // Reserves `bytes` of address space, rounded up to 2 MiB; 0: as much as the machine has memory, at most 64 GiB (a
  // process maps a heap for every peer). Takes no memory yet. Throws RG_E_OPERATION.
  explicit heap(std::uint64_t bytes);

  // Returns zeroed memory whose pages are allocated, page-aligned, or aligned to 2 MiB from that size on. `bytes` is
  // rounded up to pages, and may be 0. Throws RG_E_OPERATION if the heap or the machine's memory runs out.
  void* allocate(std::uint64_t bytes);
  // Returns the pages of an allocation to the system. Requires that no peer accesses them any more. Null and addresses
  // that allocate() did not return are ignored.
  void free(void* address) noexcept;

  // Returns whether the bytes lie in this heap's address space, allocated or not.
  bool holds(const void* address, std::uint64_t bytes) const noexcept { return memory_.holds(address, bytes); }
  // Requires an address that the heap holds.
  std::uint64_t offset_of(const void* address) const noexcept {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - memory_.base());
  }
  const file_descriptor& descriptor() const noexcept { return descriptor_; }
  const mapping& memory() const noexcept { return memory_; }

private:
  using ranges = std::map<std::uint64_t, std::uint64_t>; // offset -> bytes

  // Moves a range from unused_ to used_ and returns its offset. Throws RG_E_OPERATION if none is large enough.
  std::uint64_t reserve(std::uint64_t bytes, std::uint64_t alignment);
  // Returns the pages of a range, which is in used_ no more, to the system and adds the range to unused_.
  void unreserve(std::uint64_t offset, std::uint64_t bytes);

  file_descriptor descriptor_;
  mapping memory_;
  ranges used_, unused_;
};

} // namespace shm
