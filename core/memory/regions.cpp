// SPDX-License-Identifier: Apache-2.0
#include "memory/regions.hpp"

#include "base/failure.hpp"

#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <regatta/plugin.hpp>
#include <sys/mman.h>

namespace regatta {

void aligned_free::operator()(void* p) const noexcept {
  std::free(p);
}

std::unique_ptr<void, aligned_free> allocate_aligned(std::uint64_t bytes) {
  constexpr std::uint64_t huge_page = 2u << 20;
  const std::uint64_t alignment = bytes >= huge_page ? huge_page : bytes >= (1u << 20) ? 4096 : 64;
  const std::uint64_t size = (std::max<std::uint64_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  void* p = size < bytes ? nullptr : std::aligned_alloc(alignment, size);
  if (!p) throw failure(exit_code::run, fmt::format("out of memory: {} bytes asked for", bytes));
  if (alignment == huge_page) madvise(p, size, MADV_HUGEPAGE); // a refusal costs speed alone
  std::memset(p, 0, size);                                     // touches the pages too: not inside a timed region
  return std::unique_ptr<void, aligned_free>(p);
}

region_table::region_table(const rg_regions* transport, void* transport_self, bool ghosts, processor* device,
                           std::uint32_t kind, std::uint32_t reaches)
    : transport_self_(transport_self), ghosts_(ghosts), device_(device), kind_(kind), reaches_(reaches) {
  if (transport) transport_ = rg::copy_versioned(*transport);
}

region_table::~region_table() {
  for (std::size_t i = regions_.size(); i-- > 0;)
    if (transport_.remove && regions_[i].told) transport_.remove(transport_self_, static_cast<rg_region>(i + 1));
}

rg_buffer region_table::allocate(std::uint32_t type, std::uint64_t count, place in) {
  const std::uint64_t size = rg::size_of(type);
  if (!size || count > (std::uint64_t{1} << 48))
    throw failure(exit_code::plugin, fmt::format("a buffer of {} elements of type {} was asked for", count, type));
  const auto id = static_cast<rg_region>(regions_.size() + 1);
  region r;
  r.bytes = count * size;
  r.in = in;
  if (!ghosts_) {
    const std::uint32_t kind = in == place::device ? kind_ : std::uint32_t{RG_MEMORY_HOST};
    r.told = reaches_ & kind;
    if (in == place::host && r.told && transport_.allocate &&
        transport_.allocate(transport_self_, id, r.bytes, kind, &r.address) != RG_OK)
      r.address = nullptr;
    if (!r.address) {
      if (in == place::host) r.own = allocate_aligned(r.bytes);
      r.address = in == place::device   ? device_->allocate(r.bytes)
                  : in == place::shared ? device_->allocate_shared(r.bytes)
                                        : r.own.get();
      if (r.told && transport_.add && transport_.add(transport_self_, id, r.address, r.bytes, kind) != RG_OK)
        throw failure(exit_code::run, fmt::format("the transport cannot use {} bytes of memory", r.bytes));
    }
  }
  bytes_ += r.bytes;
  regions_.push_back(std::move(r));
  rg_buffer b{};
  b.region = id;
  b.type = type;
  b.count = count;
  return b;
}

bool region_table::contains(const rg_buffer& b) const noexcept {
  if (b.region == 0 || b.region > regions_.size()) return false;
  const std::uint64_t size = rg::size_of(b.type), bytes = regions_[b.region - 1].bytes;
  return size && b.offset <= bytes && b.count <= (bytes - b.offset) / size;
}

void* region_table::address(const rg_buffer& b) const noexcept {
  return ghosts_ ? nullptr : static_cast<char*>(regions_[b.region - 1].address) + b.offset;
}

} // namespace regatta
