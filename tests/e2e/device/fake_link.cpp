// SPDX-License-Identifier: Apache-2.0
#include "fake_link.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>

#include <regatta/collectives.hpp>
#include <regatta/ext/collectives.h>
#include <sys/mman.h>

namespace fake {
namespace {

constexpr std::uint64_t page = 4096;
constexpr bool exported = std::string_view(FAKE_KIND) == "toy"; // its device exports memory

} // namespace

rg_transport_caps link::caps() const {
  return {.flags = RG_CAP_EXACT_SIZE | RG_CAP_SLEEP,
          .memory = RG_MEMORY_DEVICE,
          .p2p = claims_lanes_ ? std::uint32_t{RG_P2P_INDEPENDENT} : std::uint32_t{RG_P2P_ORDERED},
          .device = FAKE_KIND};
}

rg_blob link::listen(const rg_world& world) {
  rank_ = world.rank;
  size_ = world.size;
  stream_ = gpu_.make_stream();
  return inner_.listen(world);
}

link::window::window(int fd, std::uint64_t offset, std::uint64_t bytes) : first(offset % page), room(first + bytes) {
  base = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset - first));
  if (base == MAP_FAILED) throw rg::error(RG_E_OPERATION, "the fake link cannot map the device's memory");
}

link::window::~window() {
  munmap(base, room);
}

void link::add(rg_region region, void*, std::uint64_t bytes, const rg_memory& memory) {
  if (memory.place != RG_MEMORY_DEVICE || (memory.dma_buf >= 0) != exported)
    throw rg::error(RG_E_PLUGIN, "a region came without the descriptor of its memory, or with one of no memory");
  if (exported) windows_.try_emplace(region, memory.dma_buf, memory.dma_buf_offset, bytes);
}

void* link::reach(const rg_buffer& b, void* address) const {
  if (!exported || !address) return address;
  const auto w = windows_.find(b.region);
  if (w == windows_.end()) throw rg::error(RG_E_PLUGIN, "a buffer lies in a region that was not registered");
  return static_cast<std::byte*>(w->second.base) + w->second.first + b.offset;
}

rg_status link::post(operation o) {
  if (o.transfer.after == 0) throw rg::error(RG_E_PLUGIN, "the engine said nothing of what the bytes wait for");
  o.transfer.address = reach(o.transfer.buffer, o.transfer.address);
  o.transfer.buffer.region = 0; // the inner transport takes any memory, in no region
  posted_.push_back(o);
  return RG_OK;
}

std::uint32_t link::split(std::span<const std::uint32_t> members) {
  if (members.size() != size_) throw rg::error(RG_E_OPERATION, "the fake link has one group: all ranks");
  return 0;
}

bool link::offers(std::uint32_t kind, std::uint32_t reduction, std::uint32_t type, std::uint32_t wire) const noexcept {
  const bool sums = kind == RG_OP_ALL_REDUCE || kind == RG_OP_REDUCE_SCATTER;
  return wire == 0 &&
         (sums ? reduction == RG_SUM && type == RG_F32 : kind == RG_OP_ALL_GATHER || kind == RG_OP_BROADCAST);
}

rg_status link::begin(const rg_collective& c) {
  auto t = rg::make_versioned<rg_transfer>();
  t.after = c.after;
  t.cookie = c.cookie;
  rg_collective reached = c;
  reached.source_address = reach(c.source, const_cast<void*>(c.source_address));
  reached.target_address = reach(c.target, c.target_address);
  return post({t, c.kind, reached});
}

void link::exchange(std::span<const operation> group) {
  std::size_t under_way = 0;
  for (operation o : group) {
    o.transfer.after = 0;
    while ((o.kind == RG_OP_RECV ? inner_.recv(o.transfer) : inner_.send(o.transfer)) == RG_AGAIN)
      inner_.poll(0, 0, {});
    ++under_way;
  }
  std::array<rg_completion, 16> ended;
  while (under_way) {
    const std::uint32_t n = inner_.poll(1'000'000, 0, ended);
    for (std::uint32_t i = 0; i < n; ++i)
      if (ended[i].status < 0) throw rg::error(ended[i].status, "the fake link broke");
    under_way -= n;
  }
}

// Returns the sum of all ranks' sources, in the order of the ranks.
std::vector<float> link::summed(const rg_collective& c) {
  const std::uint64_t count = c.source.count;
  const auto* const mine = static_cast<const float*>(c.source_address);
  std::vector<std::vector<float>> all(size_, std::vector<float>(mine, mine + count));
  std::vector<operation> messages;
  for (std::uint32_t r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    auto t = rg::make_versioned<rg_transfer>();
    t.peer = r;
    t.buffer = {0, RG_F32, 0, count};
    t.bytes = count * sizeof(float);
    t.address = const_cast<float*>(mine);
    messages.push_back({t, RG_OP_SEND, {}});
    t.address = all[r].data();
    messages.push_back({t, RG_OP_RECV, {}});
  }
  exchange(messages);
  for (std::uint32_t r = 1; r < size_; ++r)
    for (std::uint64_t i = 0; i < count; ++i) all[0][i] += all[r][i];
  return all[0];
}

void link::collective(const rg_collective& c) {
  if (c.kind == RG_OP_ALL_REDUCE || c.kind == RG_OP_REDUCE_SCATTER) {
    const std::vector<float> sum = summed(c);
    const bool cut = c.kind == RG_OP_REDUCE_SCATTER;
    const rg::chunk own = cut ? rg::chunk_of(c.source.count, c.counts, rank_, size_) : rg::chunk{0, c.source.count};
    // In place, the rest of the buffer is undefined.
    if (cut && c.target_address == static_cast<const float*>(c.source_address) + own.first)
      std::memset(const_cast<void*>(c.source_address), 0x7f, c.source.count * sizeof(float));
    std::memcpy(c.target_address, sum.data() + own.first, own.count * sizeof(float));
    return;
  }
  const std::uint64_t size = rg::size_of(c.target.type);
  auto* const target = static_cast<std::byte*>(c.target_address);
  std::vector<operation> messages;
  const auto message = [&](std::uint32_t kind, std::uint32_t peer, const void* address, std::uint64_t count) {
    auto t = rg::make_versioned<rg_transfer>();
    t.peer = peer;
    t.buffer = {0, c.target.type, 0, count};
    t.bytes = count * size;
    t.address = const_cast<void*>(address);
    messages.push_back({t, kind, {}});
  };
  const auto share = [&](std::uint32_t r) { return rg::chunk_of(c.target.count, c.counts, r, size_); };
  for (std::uint32_t r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    if (c.kind == RG_OP_BROADCAST && c.root == rank_) message(RG_OP_SEND, r, c.source_address, c.source.count);
    if (c.kind == RG_OP_BROADCAST && c.root == r) message(RG_OP_RECV, r, target, c.target.count);
    if (c.kind != RG_OP_ALL_GATHER) continue;
    message(RG_OP_SEND, r, c.source_address, c.source.count);
    message(RG_OP_RECV, r, target + share(r).first * size, share(r).count);
  }
  exchange(messages);
  // This rank's own elements, unless the collective is in place.
  std::byte* const own = c.kind == RG_OP_ALL_GATHER ? target + share(rank_).first * size : target;
  if (c.source_address && own != c.source_address) std::memmove(own, c.source_address, c.source.count * size);
}

std::uint32_t link::poll(std::uint64_t timeout_ns, std::uint64_t, std::span<rg_completion> out) {
  if (!posted_.empty()) {
    for (const operation& o : posted_) gpu_.wait_for(stream_, o.transfer.after);
    gpu_.add(stream_, [this, group = posted_] {
      std::vector<operation> messages;
      for (const operation& o : group)
        if (o.kind == RG_OP_SEND || o.kind == RG_OP_RECV)
          messages.push_back(o);
        else
          collective(o.of);
      exchange(messages);
    });
    const rg_fence fence = gpu_.record(stream_);
    for (const operation& o : posted_) {
      const std::uint64_t bytes = o.transfer.bytes;
      finished_.push_back({.cookie = o.transfer.cookie, .status = RG_OK, .bytes = bytes, .fence = fence});
    }
    posted_.clear();
  }
  if (finished_.empty()) {
    std::unique_lock lock(mutex_);
    const auto woken = [&] { return woken_; };
    if (timeout_ns > INT64_MAX / 2)
      wake_up_.wait(lock, woken);
    else
      wake_up_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), woken);
    woken_ = false;
  }
  const auto n = static_cast<std::ptrdiff_t>(std::min(out.size(), finished_.size()));
  std::copy_n(finished_.begin(), n, out.begin());
  finished_.erase(finished_.begin(), finished_.begin() + n);
  return static_cast<std::uint32_t>(n);
}

void link::wake() noexcept {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  wake_up_.notify_one();
}

void link::close(std::uint64_t timeout_ns) {
  gpu_.wait(gpu_.record(stream_));
  inner_.close(timeout_ns);
}

} // namespace fake
