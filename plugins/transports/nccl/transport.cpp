// SPDX-License-Identifier: Apache-2.0
#include "transport.hpp"

#include "interfaces.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include <regatta/collectives.hpp>
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
  return {.flags = RG_CAP_EXACT_SIZE | RG_CAP_SLEEP | RG_CAP_CANCEL_ALL,
          .memory = RG_MEMORY_DEVICE,
          .p2p = RG_P2P_ORDERED,
          .device = "cuda"};
}

// ---------------------------------------------------------------------------------------------------- connecting ---

rg_blob transport::listen(const rg_world& world) {
  rank_ = world.rank;
  choose_interfaces(world);
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
  await("all ranks to join the communicator", from_now(timeout_ns), RG_E_PEER,
        [&] { return medium_->ready(groups_[0].comm); });
}

// Group 0 has all ranks. The ids of other groups go through the host: NCCL's own split would also need the ranks that
// are not members.
std::uint32_t transport::split(std::span<const std::uint32_t> members) {
  if (members.size() == groups_.at(0).size) return 0;
  const auto index = static_cast<std::uint32_t>(std::find(members.begin(), members.end(), rank_) - members.begin());
  const auto size = static_cast<std::uint32_t>(members.size());
  if (index == size) throw rg::error(RG_E_OPERATION, "nccl: split: expected this rank among the members");
  group g{.comm = nullptr, .size = size, .index = index};
  if (size > 1) {
    const std::vector<std::byte> id = exchange_(members, index == 0 ? medium_->make_id() : std::vector<std::byte>());
    g.comm = medium_->join(id, size, index);
    groups_.push_back(g); // from here on abort() includes it
    await("all members of a group to join its communicator", from_now(split_timeout_ns), RG_E_PEER,
          [&] { return medium_->ready(g.comm); });
  } else {
    groups_.push_back(g);
  }
  return static_cast<std::uint32_t>(groups_.size() - 1);
}

void transport::close(std::uint64_t timeout_ns) {
  if (!medium_ || aborted_) return;
  const auto deadline = from_now(timeout_ns);
  await("the last messages", deadline, RG_TIMEOUT, [&] {
    advance();
    return posted_.empty() && launching_.empty() && !last_;
  });
  for (const group& g : groups_)
    if (g.comm) medium_->finalize(g.comm);
  for (group& g : groups_) {
    if (!g.comm) continue;
    await("the other ranks to close", deadline, RG_TIMEOUT, [&] { return medium_->ready(g.comm); });
    medium_->destroy(g.comm);
    g.comm = nullptr;
  }
}

// An abort makes the peers fail, too, instead of waiting for this rank.
void transport::await(const char* what, clock::time_point deadline, rg_status late, const std::function<bool()>& done) {
  try {
    while (!done()) {
      if (clock::now() > deadline)
        throw rg::error(late, std::string("nccl: waited too long for ") + what +
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

rg_status transport::post(const rg_transfer& t, std::uint32_t kind) {
  if (aborted_) return RG_E_CANCELLED;
  if (lane_.value_or(t.lane) != t.lane)
    throw rg::error(RG_E_CONFIG, "nccl: the strategy sends on lanes " + std::to_string(*lane_) + " and " +
                                     std::to_string(t.lane) +
                                     ", but NCCL keeps one order for all messages; use native collectives, one lane "
                                     "(such as [strategy.allreduce] lanes = 1), or another transport");
  lane_ = t.lane;
  operation o{.of = {}, .peer = t.peer, .bytes = t.bytes};
  o.of.kind = kind;
  o.of.source_address = o.of.target_address = t.address;
  o.of.after = t.after;
  o.of.cookie = t.cookie;
  posted_.push_back(o);
  return RG_OK;
}

// Barriers are missing: NCCL has none, and its operations take effect on the device.
bool transport::offers(std::uint32_t kind, std::uint32_t reduction, std::uint32_t type,
                       std::uint32_t wire) const noexcept {
  if (wire) return false;
  if (rg::reduces(kind)) return can_reduce(type, reduction);
  return kind >= RG_OP_ALL_REDUCE && kind <= RG_OP_ALL_TO_ALL && rg::size_of(type) > 0;
}

rg_status transport::begin(const rg_collective& c) {
  if (aborted_) return RG_E_CANCELLED;
  const std::uint32_t type = c.source.type ? c.source.type : c.target.type;
  if (c.group >= groups_.size())
    throw rg::error(RG_E_OPERATION, "nccl: expected a group from split(), got number " + std::to_string(c.group));
  if (rg::has_root(c.kind) && c.root >= groups_[c.group].size)
    throw rg::error(RG_E_OPERATION, "nccl: expected a root among the members of the group");
  if (!offers(c.kind, c.reduction, type, c.wire))
    throw rg::error(RG_E_OPERATION, "nccl: expected a collective that NCCL has, got one of another kind or type");
  posted_.push_back({.of = c, .peer = 0, .bytes = std::max(rg::bytes_of(c.source), rg::bytes_of(c.target))});
  return RG_OK;
}

void transport::end(const operation& o, rg_status status, rg_fence fence) {
  finished_.push_back({.cookie = o.of.cookie, .status = status, .bytes = o.bytes, .fence = fence});
}

void transport::enqueue(const operation& o) {
  const group& g = groups_[o.of.group];
  switch (o.of.kind) {
  case RG_OP_SEND:
    medium_->send(g.comm, o.of.source_address, o.bytes, o.peer);
    counters_.bytes_sent += o.bytes;
    ++counters_.messages_sent;
    return;
  case RG_OP_RECV:
    medium_->recv(g.comm, o.of.target_address, o.bytes, o.peer);
    counters_.bytes_received += o.bytes;
    ++counters_.messages_received;
    return;
  case RG_OP_REDUCE:
  case RG_OP_BROADCAST: {
    const bool sends = (o.of.kind == RG_OP_BROADCAST) == (o.of.root == g.index);
    (sends ? counters_.bytes_sent : counters_.bytes_received) += o.bytes;
    break;
  }
  default: {
    // The bytes of a ring, as nccl-tests counts them; NVLink switches may add on the way and move fewer.
    const std::uint64_t bytes = o.bytes / g.size * (g.size - 1) * (o.of.kind == RG_OP_ALL_REDUCE ? 2 : 1);
    counters_.bytes_sent += bytes;
    counters_.bytes_received += bytes;
  }
  }
  enqueue_collective(o.of, g);
}

void transport::enqueue_collective(const rg_collective& c, const group& g) {
  const medium::elements elements{c.source.count, c.source.type, c.reduction};
  switch (c.kind) {
  case RG_OP_ALL_REDUCE: return medium_->all_reduce(g.comm, c.source_address, c.target_address, elements);
  case RG_OP_REDUCE: return medium_->reduce(g.comm, c.source_address, c.target_address, elements, c.root);
  case RG_OP_BROADCAST:
    // NCCL reads `from` on the root only.
    return medium_->broadcast(g.comm, c.root == g.index ? c.source_address : c.target_address, c.target_address,
                              rg::bytes_of(c.target), c.root);
  case RG_OP_REDUCE_SCATTER: return enqueue_reduce_scatter(c, g);
  case RG_OP_ALL_GATHER: return enqueue_all_gather(c, g);
  default: return enqueue_messages(c, g);
  }
}

namespace {

const std::byte* at(const void* first, std::uint64_t bytes) {
  return static_cast<const std::byte*>(first) + bytes;
}
std::byte* at(void* first, std::uint64_t bytes) {
  return static_cast<std::byte*>(first) + bytes;
}

bool are_equal(const rg_collective& c, std::uint64_t count, std::uint32_t members) {
  for (std::uint32_t k = 1; k < members; ++k)
    if (rg::chunk_of(count, c.counts, k, members).count != rg::chunk_of(count, c.counts, 0, members).count)
      return false;
  return true;
}

} // namespace

// NCCL's own reduce-scatter and all-gather need chunks of equal length. Other chunks become one reduce or broadcast
// each; NCCL launches them together because they are in one group.
void transport::enqueue_reduce_scatter(const rg_collective& c, const group& g) {
  if (are_equal(c, c.source.count, g.size))
    return medium_->reduce_scatter(g.comm, c.source_address, c.target_address,
                                   {c.target.count, c.source.type, c.reduction});
  for (std::uint32_t k = 0; k < g.size; ++k) {
    const rg::chunk part = rg::chunk_of(c.source.count, c.counts, k, g.size);
    const void* const from = at(c.source_address, part.first * rg::size_of(c.source.type));
    if (part.count > 0) // `to` is read on the root only
      medium_->reduce(g.comm, from, k == g.index ? c.target_address : const_cast<void*>(from),
                      {part.count, c.source.type, c.reduction}, k);
  }
}

void transport::enqueue_all_gather(const rg_collective& c, const group& g) {
  if (are_equal(c, c.target.count, g.size))
    return medium_->all_gather(g.comm, c.source_address, c.target_address, rg::bytes_of(c.source));
  const std::uint64_t element = rg::size_of(c.target.type);
  for (std::uint32_t k = 0; k < g.size; ++k) {
    const rg::chunk part = rg::chunk_of(c.target.count, c.counts, k, g.size);
    void* const to = at(c.target_address, part.first * element);
    if (part.count > 0) medium_->broadcast(g.comm, k == g.index ? c.source_address : to, to, part.count * element, k);
  }
}

// Collectives that NCCL lacks, as messages. This rank's own chunk is copied.
void transport::enqueue_messages(const rg_collective& c, const group& g) {
  const std::uint64_t element = rg::size_of(c.source.type ? c.source.type : c.target.type);
  const bool all_to_all = c.kind == RG_OP_ALL_TO_ALL;
  const auto part_of = [&](const rg_buffer& whole, const std::uint64_t* counts, std::uint32_t k) {
    const rg::chunk part =
        all_to_all && !counts ? rg::equal_chunk(whole.count, k, g.size) : rg::chunk_of(whole.count, counts, k, g.size);
    return rg::chunk{part.first * element, part.count * element};
  };
  const bool is_root = c.root == g.index;
  const bool scatters = all_to_all || (c.kind == RG_OP_SCATTER && is_root),
             gathers = all_to_all || (c.kind == RG_OP_GATHER && is_root);
  const rg::chunk own_source = scatters ? part_of(c.source, c.counts, g.index) : rg::chunk{0, rg::bytes_of(c.source)};
  const rg::chunk own_target = gathers ? part_of(c.target, all_to_all ? c.target_counts : c.counts, g.index)
                                       : rg::chunk{0, rg::bytes_of(c.target)};
  for (std::uint32_t k = 0; k < g.size; ++k) {
    if (k == g.index) continue;
    if (const rg::chunk s = scatters ? part_of(c.source, c.counts, k) : rg::chunk{0, 0}; s.count > 0)
      medium_->send(g.comm, at(c.source_address, s.first), s.count, k);
    if (const rg::chunk t = gathers ? part_of(c.target, all_to_all ? c.target_counts : c.counts, k) : rg::chunk{0, 0};
        t.count > 0)
      medium_->recv(g.comm, at(c.target_address, t.first), t.count, k);
  }
  if (c.kind == RG_OP_GATHER && !is_root && own_source.count > 0)
    medium_->send(g.comm, c.source_address, own_source.count, c.root);
  if (c.kind == RG_OP_SCATTER && !is_root && own_target.count > 0)
    medium_->recv(g.comm, c.target_address, own_target.count, c.root);
  if (all_to_all || is_root) {
    const std::byte* const from = at(c.source_address, own_source.first);
    std::byte* const to = at(c.target_address, own_target.first);
    if (from != to && own_source.count > 0) medium_->copy(from, to, own_source.count);
  }
}

void transport::copy_alone(const rg_collective& c) {
  if (c.source_address != c.target_address) medium_->copy(c.source_address, c.target_address, rg::bytes_of(c.source));
}

// Operations without bytes are left out, on both sides.
void transport::launch() {
  const auto last = std::find_if(posted_.begin(), posted_.end(),
                                 [&](const operation& o) { return o.is_message() != posted_.front().is_message(); });
  launching_.assign(posted_.begin(), last);
  posted_.erase(posted_.begin(), last);
  rg_fence waited = 0;
  for (const operation& o : launching_)
    if (o.of.after && std::exchange(waited, o.of.after) != o.of.after) medium_->wait_for(o.of.after);
  const auto moves = [&](const operation& o) { return o.bytes && groups_[o.of.group].comm; };
  for (const operation& o : launching_)
    if (o.bytes && !moves(o)) copy_alone(o.of);
  if (std::none_of(launching_.begin(), launching_.end(), moves)) return;
  medium_->begin_group();
  for (const operation& o : launching_)
    if (moves(o)) enqueue(o);
  medium_->end_group();
}

void transport::complete_launched() {
  last_ = medium_->record();
  for (const operation& o : launching_) end(o, RG_OK, last_);
  launching_.clear();
}

void transport::check_health() {
  for (const group& g : groups_)
    if (g.comm) medium_->ready(g.comm); // throws if the communicator has failed
}

void transport::advance() {
  if (aborted_) return;
  try {
    for (;;) {
      if (!launching_.empty()) {
        for (const operation& o : launching_)
          if (groups_[o.of.group].comm && !medium_->ready(groups_[o.of.group].comm)) return;
        complete_launched();
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
