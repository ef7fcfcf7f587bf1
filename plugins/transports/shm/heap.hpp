// SPDX-License-Identifier: Apache-2.0
//
// A rank's heap: one sparse memfd that every peer maps as a whole when it connects. Regions are allocated from it, so
// that {offset, bytes} is all that a peer needs to reach a buffer, whether allocated before or after connecting.
#pragma once

#include "memory.hpp"

#include <map>

namespace shm {

// [main]; holds() and offset_of() also [loop].
class heap {
public:
  // Reserves `bytes` of address space; 0: as much as the machine has memory, at most 64 GiB (a process maps a heap for
  // every peer).
  explicit heap(std::uint64_t bytes);

  // Returns zeroed memory whose pages are allocated and mapped, page-aligned, or aligned to 2 MiB from that size on.
  // Throws RG_E_OPERATION if memory runs out.
  void* allocate(std::uint64_t bytes);
  // Returns the pages to the system. Null is allowed.
  void free(void* address) noexcept;

  bool holds(const void* address, std::uint64_t bytes) const noexcept { return memory_.holds(address, bytes); }
  std::uint64_t offset_of(const void* address) const noexcept {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - memory_.base());
  }
  const file_descriptor& descriptor() const noexcept { return descriptor_; }
  const mapping& memory() const noexcept { return memory_; }

private:
  using pieces = std::map<std::uint64_t, std::uint64_t>; // offset -> bytes

  std::uint64_t take(std::uint64_t bytes, std::uint64_t alignment);
  void give_back(std::uint64_t offset, std::uint64_t bytes);

  file_descriptor descriptor_;
  mapping memory_;
  pieces used_, unused_;
};

} // namespace shm
