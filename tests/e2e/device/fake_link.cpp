// SPDX-License-Identifier: Apache-2.0
#include "fake_link.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include <regatta/ext/collectives.h>
#include <regatta/strategy.hpp>

namespace fake {

rg_transport_caps link::caps() const {
  return {.flags = RG_CAP_EXACT_SIZE | RG_CAP_SLEEP, .memory = RG_MEMORY_CUDA, .p2p = RG_P2P_ORDERED};
}

rg_blob link::listen(const rg_world& world) {
  rank_ = world.rank;
  size_ = world.size;
  stream_ = gpu_.make_stream();
  return inner_.listen(world);
}

rg_status link::post(operation o) {
  if (o.transfer.after == 0) throw rg::error(RG_E_PLUGIN, "the engine said nothing of what the bytes wait for");
  o.transfer.buffer.region = 0; // the inner transport takes any memory, in no region
  posted_.push_back(o);
  return RG_OK;
}

std::uint32_t link::split(std::span<const std::uint32_t> members) {
  if (members.size() != size_) throw rg::error(RG_E_OPERATION, "the fake link has one group: all ranks");
  return 0;
}

rg_status link::post(const rg_collective& c, kind what) {
  auto t = rg::make_versioned<rg_transfer>();
  t.buffer = c.buffer;
  t.bytes = rg::bytes_of(c.buffer);
  t.address = c.address;
  t.after = c.after;
  t.cookie = c.cookie;
  t.peer = c.root;
  return post({t, what});
}

void link::exchange(std::span<const operation> group) {
  std::size_t under_way = 0;
  for (operation o : group) {
    o.transfer.after = 0;
    while ((o.what == kind::recv ? inner_.recv(o.transfer) : inner_.send(o.transfer)) == RG_AGAIN)
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

// Sums in the order of the ranks.
void link::add_up(const operation& o) {
  const std::uint64_t count = o.transfer.buffer.count;
  auto* const mine = static_cast<float*>(o.transfer.address);
  std::vector<std::vector<float>> all(size_, std::vector<float>(count));
  std::vector<operation> messages;
  for (std::uint32_t r = 0; r < size_; ++r) {
    if (r == rank_) {
      std::memcpy(all[r].data(), mine, count * sizeof(float));
      continue;
    }
    operation m = o;
    m.transfer.peer = r;
    m.what = kind::send;
    messages.push_back(m);
    m.what = kind::recv;
    m.transfer.address = all[r].data();
    messages.push_back(m);
  }
  exchange(messages);
  for (std::uint64_t i = 0; i < count; ++i) {
    mine[i] = all[0][i];
    for (std::uint32_t r = 1; r < size_; ++r) mine[i] += all[r][i];
  }
}

void link::collective(const operation& o) {
  if (o.what == kind::all_reduce) return add_up(o);
  const std::uint64_t size = rg::size_of(o.transfer.buffer.type);
  auto* const begin = static_cast<std::byte*>(o.transfer.address);
  const auto share = [&](std::uint32_t r) { return rg::part_of({0, o.transfer.buffer.count}, r, size_); };
  if (o.what == kind::reduce_scatter) {
    add_up(o);
    const auto mine = share(rank_); // the rest of the buffer is undefined
    std::memset(begin, 0x7f, mine.first * size);
    std::memset(begin + mine.end() * size, 0x7f, (o.transfer.buffer.count - mine.end()) * size);
    return;
  }
  std::vector<operation> messages;
  const auto message = [&](kind what, std::uint32_t peer, rg::span_of_arena part) {
    operation m = o;
    m.what = what;
    m.transfer.peer = peer;
    m.transfer.address = begin + part.first * size;
    m.transfer.buffer.count = part.count;
    m.transfer.bytes = part.count * size;
    messages.push_back(m);
  };
  for (std::uint32_t r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    const rg::span_of_arena all{0, o.transfer.buffer.count};
    if (o.what == kind::broadcast && o.transfer.peer == rank_) message(kind::send, r, all);
    if (o.what == kind::broadcast && o.transfer.peer == r) message(kind::recv, r, all);
    if (o.what != kind::all_gather) continue;
    message(kind::send, r, share(rank_));
    message(kind::recv, r, share(r));
  }
  exchange(messages);
}

std::uint32_t link::poll(std::uint64_t timeout_ns, std::uint64_t, std::span<rg_completion> out) {
  if (!posted_.empty()) {
    for (const operation& o : posted_) gpu_.wait_for(stream_, o.transfer.after);
    gpu_.add(stream_, [this, group = posted_] {
      std::vector<operation> messages;
      for (const operation& o : group)
        if (o.what == kind::send || o.what == kind::recv)
          messages.push_back(o);
        else
          collective(o);
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
