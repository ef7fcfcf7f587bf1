// SPDX-License-Identifier: Apache-2.0
#include "memory/regions.hpp"

#include "base/failure.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <regatta/ext/regions.h>
#include <regatta/plugin.hpp>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace regatta {

namespace {

// One cache line, so that regions stay aligned. The value is finite, so that code that reads it by mistake changes the
// loss visibly.
constexpr std::size_t guard_floats = 16, guard_bytes = guard_floats * sizeof(float);
constexpr float guard_value = -7.6543e29F;

// Returns the offset of the guard behind a region of `bytes`. A multiple of a float's size, because a device fills it
// as floats.
std::uint64_t guard_begin_behind(std::uint64_t bytes) {
  return guard_bytes + (bytes + sizeof(float) - 1) / sizeof(float) * sizeof(float);
}

} // namespace

void aligned_free::operator()(void* p) const noexcept {
  std::free(p);
}

std::unique_ptr<void, aligned_free> allocate_aligned(std::uint64_t bytes) {
  constexpr std::uint64_t huge_page = 2u << 20;
  const std::uint64_t alignment = bytes >= huge_page ? huge_page : bytes >= (1u << 20) ? 4096 : 64;
  const std::uint64_t size = (std::max<std::uint64_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  void* p = size < bytes ? nullptr : std::aligned_alloc(alignment, size);
  if (!p) throw failure(exit_code::run, fmt::format("out of memory: {} bytes asked for", bytes));
  if (alignment == huge_page) madvise(p, size, MADV_HUGEPAGE); // if refused, only speed is lost
  std::memset(p, 0, size); // also touches the pages, so that no timed region does it
  return std::unique_ptr<void, aligned_free>(p);
}

namespace {

// Returns the NUMA node of memory that was touched before, or -1 if the kernel does not tell.
std::int32_t numa_node_of(void* address) {
  int node = -1;
  const long status = syscall(SYS_get_mempolicy, &node, nullptr, 0, address, MPOL_F_NODE | MPOL_F_ADDR);
  return status == 0 ? node : -1;
}

} // namespace

region_table::region_table(const rg_regions* transport, void* transport_self, bool ghosts, std::uint32_t reaches,
                           processor* device, std::int32_t device_index)
    : transport_self_(transport_self), ghosts_(ghosts), device_(device), device_index_(device_index), reaches_(reaches),
      front_(ghosts ? 0 : guard_bytes) {
  if (transport) transport_ = rg::copy_versioned(*transport);
}

region_table::~region_table() {
  for (std::size_t i = regions_.size(); i-- > 0;)
    if (transport_.remove && regions_[i].told) transport_.remove(transport_self_, static_cast<rg_region>(i + 1));
}

rg_buffer region_table::allocate(std::uint32_t type, std::uint64_t count, std::string name, place in) {
  if (!rg::bits_of(type) || count > (std::uint64_t{1} << 48))
    throw failure(exit_code::plugin, fmt::format("a buffer of {} elements of type {} was asked for", count, type));
  region r;
  r.bytes = rg::bytes_of(type, count);
  r.in = in;
  r.name = std::move(name);
  if (!ghosts_) {
    const rg_memory where = memory_in(in == place::device ? RG_MEMORY_DEVICE : RG_MEMORY_HOST);
    r.told = reaches_ & where.place;
    const std::uint64_t behind = guard_begin_behind(r.bytes);
    reserve(r, where, behind + guard_bytes);
    write_guard(r, 0);
    write_guard(r, behind);
  } else if (numbers_ && type == RG_I64 && in == place::host) {
    r.own.reset(std::calloc(std::max<std::uint64_t>(r.bytes, 1), 1)); // pages that are never written take no memory
    if (!r.own) throw failure(exit_code::run, fmt::format("out of memory: {} bytes asked for", r.bytes));
    r.address = static_cast<char*>(r.own.get());
  }
  bytes_ += r.bytes;
  regions_.push_back(std::move(r));
  rg_buffer b{};
  b.region = static_cast<rg_region>(regions_.size());
  b.type = type;
  b.offset = front_;
  b.count = count;
  return b;
}

// Allocates `bytes`, guards included, for the next region, and registers it with the transport.
void region_table::reserve(region& r, rg_memory where, std::uint64_t bytes) {
  const auto id = static_cast<rg_region>(regions_.size() + 1);
  void* address = nullptr;
  if (r.in == place::host && r.told && transport_.allocate &&
      transport_.allocate(transport_self_, id, bytes, &where, &address) != RG_OK)
    address = nullptr;
  if (!address) {
    if (r.in == place::host) r.own = allocate_aligned(bytes);
    address = r.in == place::device   ? device_->allocate(bytes)
              : r.in == place::shared ? device_->allocate_shared(bytes)
                                      : r.own.get();
    if (r.told) tell(id, address, bytes, where);
  }
  r.address = static_cast<char*>(address);
}

rg_memory region_table::memory_in(std::uint32_t kind) const {
  auto where = rg::make_versioned<rg_memory>();
  where.place = kind;
  where.device = kind == RG_MEMORY_DEVICE ? device_index_ : -1;
  where.numa_node = where.dma_buf = -1;
  return where;
}

void region_table::tell(rg_region id, void* address, std::uint64_t bytes, rg_memory where) {
  if (!transport_.add) return;
  const bool host = where.place == RG_MEMORY_HOST;
  const auto exported = host ? rg::exported_memory{} : device_->export_memory(address, bytes);
  if (host) where.numa_node = numa_node_of(address);
  where.dma_buf = exported.fd;
  where.dma_buf_offset = exported.offset;
  const rg_status status = transport_.add(transport_self_, id, address, bytes, &where);
  if (exported.fd >= 0) close(exported.fd);
  if (status != RG_OK) throw failure(exit_code::run, fmt::format("the transport cannot use {} bytes of memory", bytes));
}

rg_region region_table::add(void* address, std::uint64_t bytes, std::uint32_t kind) {
  if (!ghosts_) tell(next_added_, address, bytes, memory_in(kind));
  return next_added_++;
}

void region_table::remove(rg_region added) {
  if (transport_.add && transport_.remove && !ghosts_) transport_.remove(transport_self_, added);
}

void region_table::write_guard(const region& r, std::uint64_t at) const {
  if (r.in == place::device) {
    auto w = rg::make_versioned<rg_work>();
    w.kind = RG_OP_FILL;
    w.type = w.source_type = RG_F32;
    w.target = r.address + at;
    w.count = guard_floats;
    w.value = guard_value;
    device_->run(w);
  } else {
    std::fill_n(reinterpret_cast<float*>(r.address + at), guard_floats, guard_value);
  }
}

std::optional<std::string> region_table::find_damage(const read_function& read) const {
  if (ghosts_) return std::nullopt;
  float expected[guard_floats], copy[guard_floats];
  std::fill_n(expected, guard_floats, guard_value);
  const auto intact = [&](const region& r, std::uint64_t at) {
    const auto* guard = reinterpret_cast<const float*>(r.address + at);
    if (r.in == place::device) {
      read(copy, guard, guard_bytes);
      guard = copy;
    }
    return std::equal(expected, expected + guard_floats, guard);
  };
  for (const region& r : regions_) {
    if (!intact(r, 0)) return "memory before " + r.name;
    if (!intact(r, guard_begin_behind(r.bytes))) return "memory behind " + r.name;
  }
  return std::nullopt;
}

bool region_table::contains(const rg_buffer& b) const noexcept {
  if (b.region == 0 || b.region > regions_.size()) return false;
  const std::uint64_t bits = rg::bits_of(b.type), bytes = regions_[b.region - 1].bytes;
  return bits && b.offset >= front_ && b.offset - front_ <= bytes &&
         b.count <= (bytes - (b.offset - front_)) * 8 / bits;
}

void* region_table::address(const rg_buffer& b) const noexcept {
  char* const first = regions_[b.region - 1].address;
  return first ? first + b.offset : nullptr;
}

} // namespace regatta
