// SPDX-License-Identifier: Apache-2.0
#include "heap.hpp"

#include <algorithm>
#include <iterator>

namespace shm {

namespace {

constexpr std::uint64_t huge_page = 2 << 20;
constexpr std::uint64_t most_by_default = std::uint64_t{64} << 30;

std::uint64_t page_size() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::uint64_t machine_memory() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * page_size();
}

} // namespace

heap::heap(std::uint64_t bytes) {
  bytes = round_up(bytes ? bytes : std::min(machine_memory(), most_by_default), huge_page);
  descriptor_ = make_sealed_memory("regatta-heap", bytes);
  memory_ = mapping(descriptor_, bytes, "the heap (parameter heap)");
  // Has an effect only if the administrator lets shared memory request huge pages (shmem_enabled = advise).
  ::madvise(memory_.base(), bytes, MADV_HUGEPAGE);
  unused_.emplace(0, bytes);
}

std::uint64_t heap::reserve(std::uint64_t bytes, std::uint64_t alignment) {
  for (auto it = unused_.begin(); it != unused_.end(); ++it) {
    const auto [start, length] = *it;
    const std::uint64_t from = round_up(start, alignment);
    if (from - start > length || bytes > length - (from - start)) continue;
    unused_.erase(it);
    if (from > start) unused_.emplace(start, from - start);
    if (start + length > from + bytes) unused_.emplace(from + bytes, start + length - from - bytes);
    used_.emplace(from, bytes);
    return from;
  }
  throw rg::error(RG_E_OPERATION, "shm: no room for " + std::to_string(bytes) + " bytes in a heap of " +
                                      std::to_string(memory_.bytes()) + ": raise the transport's parameter heap");
}

void* heap::allocate(std::uint64_t bytes) {
  if (bytes > memory_.bytes())
    bytes = memory_.bytes() + 1; // reserve() then reports it, and rounding up cannot overflow
  bytes = round_up(std::max<std::uint64_t>(bytes, 1), page_size());
  const std::uint64_t offset = reserve(bytes, bytes >= huge_page ? huge_page : page_size());
  // Allocates the pages now, where failure can be reported: touching a page that cannot be had would raise SIGBUS.
  if (::fallocate(descriptor_.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0) {
    const int code = errno;
    used_.erase(offset);
    unreserve(offset, bytes);
    errno = code;
    fail_with_errno(RG_E_OPERATION, "no memory for a region of " + std::to_string(bytes) + " bytes");
  }
  std::byte* address = memory_.base() + offset;
#ifdef MADV_POPULATE_WRITE
  ::madvise(address, bytes, MADV_POPULATE_WRITE); // one call instead of a page fault per page; fails before Linux 5.14
#endif
  return address;
}

void heap::free(void* address) noexcept {
  if (!address) return;
  const auto it = used_.find(offset_of(address));
  if (it == used_.end()) return;
  const auto [offset, bytes] = *it;
  used_.erase(it);
  unreserve(offset, bytes);
}

void heap::unreserve(std::uint64_t offset, std::uint64_t bytes) {
  // Freed pages become a hole. It reads as zeros, so that the next allocation is zeroed.
  ::fallocate(descriptor_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
              static_cast<off_t>(bytes));
  auto next = unused_.lower_bound(offset);
  if (next != unused_.end() && next->first == offset + bytes) {
    bytes += next->second;
    next = unused_.erase(next);
  }
  if (next != unused_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  unused_.emplace(offset, bytes);
}

} // namespace shm
