// SPDX-License-Identifier: Apache-2.0
#include "transport.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include <regatta/ext/collectives.h>

namespace nccl {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr std::uint64_t split_timeout_ns = 20'000'000'000;
constexpr nanoseconds launching_pause{20'000};  // between checks of a group that is not in the stream yet
constexpr nanoseconds health_pause{10'000'000}; // between checks for errors while the device is busy

// The time `ns` from now, or the clock's last time if that is later.
clock::time_point from_now(std::uint64_t ns) {
  const auto now = clock::now();
  const auto room = static_cast<std::uint64_t>((clock::time_point::max() - now).count());
  return ns >= room ? clock::time_point::max() : now + nanoseconds(ns);
}

} // namespace

transport::~transport() {
  abort(); // does nothing after close()
}

rg_transport_caps transport::caps() {
  return {
      .flags = RG_CAP_EXACT_SIZE | RG_CAP_SLEEP | RG_CAP_CANCEL_ALL, .memory = RG_MEMORY_CUDA, .p2p = RG_P2P_ORDERED};
}

// ---------------------------------------------------------------------------------------------------- connecting ---

rg_blob transport::listen(const rg_world& world) {
  rank_ = world.rank;
  medium_ = open_(world.rank);
  if (world.rank == 0 && world.size > 1) id_ = medium_->make_id();
  return {id_.data(), id_.size()};
}

void transport::connect(std::span<const rg_blob> blobs, std::uint64_t timeout_ns) {
  const auto size = static_cast<std::uint32_t>(blobs.size());
  if (size == 1) {
    groups_.push_back({nullptr, 1, 0});
    return;
  }
  if (!blobs[0].bytes)
    throw rg::error(RG_E_PEER,
                    "nccl: expected rank 0's id of the communicator, got none: use transport nccl on all ranks");
  id_bytes_ = blobs[0].bytes;
  const auto* id = static_cast<const std::byte*>(blobs[0].data);
  groups_.push_back({medium_->join({id, id_bytes_}, size, rank_), size, rank_});
  await("all ranks to join the communicator", timeout_ns, [&] { return medium_->ready(groups_[0].comm); });
}

// Group 0 has all ranks. The ids of other groups are sent over it: NCCL's own split would also need the ranks that are
// not members.
std::uint32_t transport::split(std::span<const std::uint32_t> members) {
  if (members.size() == groups_.at(0).size) return 0;
  const auto index = static_cast<std::uint32_t>(std::find(members.begin(), members.end(), rank_) - members.begin());
  const auto size = static_cast<std::uint32_t>(members.size());
  if (index == size) throw rg::error(RG_E_OPERATION, "nccl: split: expected this rank among the members");
  group g{.comm = nullptr, .size = size, .index = index};
  if (size > 1) {
    std::vector<std::byte> id = index == 0 ? medium_->make_id() : std::vector<std::byte>(id_bytes_);
    void* const memory = medium_->to_device(id);
    medium_->begin_group();
    if (index == 0)
      for (const std::uint32_t m : members.subspan(1)) medium_->send(groups_[0].comm, memory, id.size(), m);
    else
      medium_->recv(groups_[0].comm, memory, id.size(), members[0]);
    medium_->end_group();
    await("all members of a group to call split()", split_timeout_ns, [&] { return medium_->ready(groups_[0].comm); });
    const rg_fence sent = medium_->record();
    await("all members of a group to call split()", split_timeout_ns, [&] {
      medium_->ready(groups_[0].comm); // throws if the communicator has failed
      return medium_->passed(sent);
    });
    medium_->to_host(id);
    g.comm = medium_->join(id, size, index);
    groups_.push_back(g); // from here on abort() includes it
    await("all members of a group to join its communicator", split_timeout_ns, [&] { return medium_->ready(g.comm); });
  } else {
    groups_.push_back(g);
  }
  return static_cast<std::uint32_t>(groups_.size() - 1);
}

void transport::close(std::uint64_t timeout_ns) {
  if (!medium_ || aborted_) return;
  await("the last messages", timeout_ns, [&] {
    advance();
    return posted_.empty() && launching_.empty() && !last_;
  });
  for (const group& g : groups_)
    if (g.comm) medium_->finalize(g.comm);
  for (group& g : groups_) {
    if (!g.comm) continue;
    await("the other ranks to close", timeout_ns, [&] { return medium_->ready(g.comm); });
    medium_->destroy(g.comm);
    g.comm = nullptr;
  }
}

// Waits until done() returns true. If that takes too long or fails, aborts and throws: the abort makes the peers fail,
// too, instead of waiting for this rank.
void transport::await(const char* what, std::uint64_t timeout_ns, const std::function<bool()>& done) {
  const auto deadline = from_now(timeout_ns);
  try {
    while (!done()) {
      if (clock::now() > deadline)
        throw rg::error(RG_E_PEER, std::string("nccl: waited too long for ") + what +
                                       ": set NCCL_DEBUG=INFO in the environment to see what NCCL does");
      std::this_thread::sleep_for(launching_pause);
    }
  } catch (...) {
    abort();
    throw;
  }
}

void transport::abort() noexcept {
  aborted_ = true;
  for (group& g : groups_) {
    if (g.comm) medium_->abort(g.comm);
    g.comm = nullptr;
  }
  last_ = 0;
}

void transport::cancel(std::uint32_t) {
  abort();
  for (const std::vector<operation>* list : {&launching_, &posted_})
    for (const operation& o : *list) end(o, RG_E_CANCELLED, 0);
  launching_.clear();
  posted_.clear();
}

// ---------------------------------------------------------------------------------------------------- operations ---

rg_status transport::post(const rg_transfer& t, kind what) {
  if (aborted_) return RG_E_CANCELLED;
  if (lane_.value_or(t.lane) != t.lane)
    throw rg::error(RG_E_CONFIG, "nccl: the strategy sends on lanes " + std::to_string(*lane_) + " and " +
                                     std::to_string(t.lane) +
                                     ", but NCCL keeps one order for all messages; use native collectives, one lane "
                                     "(such as [strategy.allreduce] lanes = 1), or another transport");
  lane_ = t.lane;
  posted_.push_back({.what = what,
                     .peer = t.peer,
                     .group = 0,
                     .address = t.address,
                     .bytes = t.bytes,
                     .element = 1,
                     .after = t.after,
                     .cookie = t.cookie});
  return RG_OK;
}

rg_status transport::post(const rg_collective& c, kind what) {
  if (aborted_) return RG_E_CANCELLED;
  if (c.group >= groups_.size())
    throw rg::error(RG_E_OPERATION, "nccl: expected a group from split(), got number " + std::to_string(c.group));
  if (what == kind::broadcast && c.root >= groups_[c.group].size)
    throw rg::error(RG_E_OPERATION, "nccl: broadcast: expected a root among the members of the group");
  posted_.push_back({.what = what,
                     .peer = c.root,
                     .group = c.group,
                     .address = c.address,
                     .bytes = rg::bytes_of(c.buffer),
                     .element = rg::size_of(c.buffer.type),
                     .after = c.after,
                     .cookie = c.cookie});
  return RG_OK;
}

void transport::end(const operation& o, rg_status status, rg_fence fence) {
  finished_.push_back({.cookie = o.cookie, .status = status, .bytes = o.bytes, .fence = fence});
}

void transport::put(const operation& o) {
  const group& g = groups_[o.group];
  const auto count = [&](std::uint64_t bytes) {
    counters_.bytes_sent += bytes;
    counters_.bytes_received += bytes;
  };
  switch (o.what) {
  case kind::send:
    medium_->send(g.comm, o.address, o.bytes, o.peer);
    counters_.bytes_sent += o.bytes;
    ++counters_.messages_sent;
    break;
  case kind::recv:
    medium_->recv(g.comm, o.address, o.bytes, o.peer);
    counters_.bytes_received += o.bytes;
    ++counters_.messages_received;
    break;
  case kind::all_reduce:
    medium_->all_reduce(g.comm, static_cast<float*>(o.address), o.bytes / sizeof(float));
    // The bytes of a ring, as nccl-tests counts them; NVLink switches may add on the way and move fewer.
    count(o.bytes / g.size * (g.size - 1) * 2);
    break;
  case kind::broadcast:
    medium_->broadcast(g.comm, o.address, o.bytes, o.peer);
    (o.peer == g.index ? counters_.bytes_sent : counters_.bytes_received) += o.bytes;
    break;
  case kind::reduce_scatter:
  case kind::all_gather:
    put_chunks(o);
    count(o.bytes / g.size * (g.size - 1));
    break;
  }
}

// NCCL's own collectives need chunks of equal length. Other chunks become one reduce or broadcast each; NCCL launches
// them together because they are in one group.
void transport::put_chunks(const operation& o) {
  const group& g = groups_[o.group];
  const std::uint64_t elements = o.bytes / o.element, lines = (elements + 15) / 16;
  const bool sums = o.what == kind::reduce_scatter;
  auto* const begin = static_cast<std::byte*>(o.address);
  if (elements % (std::uint64_t{16} * g.size) == 0) {
    if (sums)
      medium_->reduce_scatter(g.comm, static_cast<float*>(o.address), elements / g.size, g.index);
    else
      medium_->all_gather(g.comm, begin, o.bytes / g.size, g.index);
    return;
  }
  for (std::uint32_t k = 0; k < g.size; ++k) {
    const std::uint64_t from = std::min(elements, lines * k / g.size * 16),
                        to = std::min(elements, lines * (k + 1) / g.size * 16);
    if (from == to) continue;
    if (sums)
      medium_->reduce(g.comm, static_cast<float*>(o.address) + from, to - from, k);
    else
      medium_->broadcast(g.comm, begin + from * o.element, (to - from) * o.element, k);
  }
}

// Starts the first run of messages, or of collectives, as one NCCL group. Operations without bytes are left out, on
// both sides.
void transport::launch() {
  const auto collective = [](const operation& o) { return o.what != kind::send && o.what != kind::recv; };
  const auto last = std::find_if(posted_.begin(), posted_.end(),
                                 [&](const operation& o) { return collective(o) != collective(posted_.front()); });
  launching_.assign(posted_.begin(), last);
  posted_.erase(posted_.begin(), last);
  rg_fence waited = 0;
  for (const operation& o : launching_)
    if (o.after && std::exchange(waited, o.after) != o.after) medium_->wait_for(o.after);
  const auto moves = [&](const operation& o) { return o.bytes && groups_[o.group].comm; };
  if (std::none_of(launching_.begin(), launching_.end(), moves)) return;
  medium_->begin_group();
  for (const operation& o : launching_)
    if (moves(o)) put(o);
  medium_->end_group();
}

// Everything in launching_ has reached the stream: completes it.
void transport::landed() {
  last_ = medium_->record();
  for (const operation& o : launching_) end(o, RG_OK, last_);
  launching_.clear();
}

void transport::check_health() {
  for (const group& g : groups_)
    if (g.comm) medium_->ready(g.comm); // throws if the communicator has failed
}

// Makes all progress that is possible without waiting.
void transport::advance() {
  if (aborted_) return;
  try {
    for (;;) {
      if (!launching_.empty()) {
        for (const operation& o : launching_)
          if (groups_[o.group].comm && !medium_->ready(groups_[o.group].comm)) return;
        landed();
      }
      if (posted_.empty()) break;
      launch();
    }
    if (!last_) return;
    check_health();
    if (medium_->passed(last_)) last_ = 0;
  } catch (...) {
    abort();
    throw;
  }
}

// ----------------------------------------------------------------------------------------------------------- loop ---

bool transport::take_wake() {
  const std::lock_guard lock(mutex_);
  return std::exchange(woken_, false);
}

void transport::wake() noexcept {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  wake_up_.notify_one();
}

std::uint32_t transport::poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
  const auto deadline = from_now(timeout_ns), spin_end = from_now(std::min(timeout_ns, spin_ns));
  for (;;) {
    advance();
    std::uint32_t count = 0;
    while (count < out.size() && handed_over_ < finished_.size()) out[count++] = finished_[handed_over_++];
    if (handed_over_ == finished_.size()) {
      finished_.clear();
      handed_over_ = 0;
    }
    const bool woken = take_wake();
    const auto now = clock::now();
    if (count || woken || now >= deadline) return count;
    if (now < spin_end) continue;
    // Only operations in launching_ can complete; while the device is busy, errors can occur.
    auto until = deadline;
    if (!launching_.empty())
      until = std::min(until, now + launching_pause);
    else if (last_)
      until = std::min(until, now + health_pause);
    std::unique_lock lock(mutex_);
    const auto is_woken = [&] { return woken_; };
    if (until == clock::time_point::max())
      wake_up_.wait(lock, is_woken);
    else
      wake_up_.wait_until(lock, until, is_woken);
  }
}

} // namespace nccl
