// SPDX-License-Identifier: Apache-2.0
//
// Shared memory between the ranks of one host.
//
//   memory.hpp       sealed memfds: memory without a name, so that nothing is left behind
//   heap.hpp         memory of regions: one memfd per rank, mapped by all its peers
//   handshake.hpp    how ranks connect, authenticate, and exchange memfds
//   control.hpp      shared state besides the heap: rings of records (ring.hpp), sleeping (wake.hpp, doorbell.hpp)
//   peer.hpp         messages, which the receiver reads in the sender's memory
//   one_sided.hpp    puts and gets, which the caller copies to or from the peer's memory
//   collectives.hpp  collectives, directly in all members' memory
//
// This file is the transport that connects these parts, and poll().
//
// The counters count payload that one rank read from or wrote to another rank's memory, and the records.
#include "collectives.hpp"
#include "doorbell.hpp"
#include "handshake.hpp"
#include "one_sided.hpp"

#include <regatta/clock.hpp>
#include <regatta/transport.hpp>

#include <algorithm>
#include <array>
#include <optional>

#include <poll.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace {

using namespace shm;

void relax() noexcept {
#ifdef __x86_64__
  _mm_pause();
#endif
}

// Sleep is cut into slices; after each one the transport checks whether a peer has died.
constexpr std::uint64_t slice_ns = 100'000'000;

class shm_transport {
public:
  struct parameters {
    std::int64_t heap = 0;
    std::int64_t ring = 0;
    std::int64_t eager = 512 << 10;
  };
  static constexpr auto fields = rg::fields(
      rg::field("heap", &parameters::heap,
                "address space of a rank's regions; memory is taken when used; 0: the machine's memory, at most 64 GiB")
          .range(0, 1LL << 44)
          .unit(RG_UNIT_BYTES),
      rg::field(
          "ring", &parameters::ring,
          "buffer of messages in flight, per peer, lane and direction; memory is taken when used; less than 16 KiB "
          "counts as 16 KiB; 0: 8 MiB divided by the number of peers, 256 KiB to 4 MiB")
          .range(0, 1 << 30)
          .unit(RG_UNIT_BYTES),
      rg::field(
          "eager", &parameters::eager,
          "messages up to this size, and a quarter of the ring, are copied into the ring; larger ones are read from "
          "the sender's memory")
          .range(0, 1 << 20)
          .unit(RG_UNIT_BYTES));

  shm_transport(const rg_host* host, const parameters& p)
      : home_(host, static_cast<std::uint64_t>(p.heap)), given_ring_(static_cast<std::uint64_t>(p.ring)) {
    home_.eager = static_cast<std::uint64_t>(p.eager);
  }

  rg_transport_caps caps() const {
    return {.flags = RG_CAP_ADD | RG_CAP_SLEEP | RG_CAP_ONE_HOST | RG_CAP_LONG_FAILS_SENDER | RG_CAP_ASCENDING_SUMS |
                     RG_CAP_ORDERED_RECEIVES,
            .memory = RG_MEMORY_HOST,
            .p2p = RG_P2P_INDEPENDENT,
            .own_threads = 0};
  }

  rg_blob listen(const rg_world& world) {
    for (std::uint32_t i = 0; i < world.peer_count; ++i) {
      const std::uint32_t peer = world.peers[i];
      if (peer >= world.size || peer == world.rank)
        throw rg::error(RG_E_CONFIG, "shm: expected a peer of rank " + std::to_string(world.rank) + " below " +
                                         std::to_string(world.size) + ", got rank " + std::to_string(peer));
      if (world.host_of && world.host_of[peer] != world.host_of[world.rank])
        throw rg::error(RG_E_CONFIG, "shm: rank " + std::to_string(peer) + " runs on another host than rank " +
                                         std::to_string(world.rank) + ": choose transport \"tcp\"");
    }
    world_ = world;
    home_.rank = world.rank;
    home_.size = world.size;
    home_.lanes = world.lanes;
    const std::uint64_t ring = ring_bytes(world.peer_count);
    home_.eager =
        std::min(home_.eager, ring / 4 - record_bytes(0)); // larger ones would fill it, and wait for each other
    home_.control = control_area(world.rank, world.size, world.lanes, ring);
    sleep_.store(&home_.control.header().sleep);
    rendezvous_.emplace(home_.host, world);
    return rendezvous_->blob();
  }

  void connect(std::span<const rg_blob> blobs, std::uint64_t timeout_ns) {
    if (!rendezvous_) throw rg::error(RG_E_OPERATION, "shm: expected listen() before connect()");
    timeout_ns_ = timeout_ns;
    auto peers = rendezvous_->connect(world_, blobs, timeout_ns, home_.control.descriptor(), home_.memory.descriptor());
    home_.peers.resize(world_.size);
    for (connected_peer& a : peers) {
      control_area control(a.control, a.rank, world_.size, world_.lanes);
      mapping memory(a.heap, sealed_size(a.heap), "the heap of rank " + std::to_string(a.rank));
      home_.peers[a.rank] =
          std::make_unique<peer>(home_, a.rank, std::move(a.socket), std::move(control), std::move(memory));
    }
    for (auto& p : home_.peers)
      if (p) connected_.push_back(p.get());
    for (peer* p : connected_) one_sided_.emplace_back(home_, *p);
    rendezvous_.reset();
  }

  rg_status send(const rg_transfer& t) {
    const auto [to, bytes] = check(t, "send to");
    to->send(t, bytes);
    return RG_OK;
  }
  rg_status recv(const rg_transfer& t) {
    const auto [from, bytes] = check(t, "receive from");
    if ((t.flags & RG_TRANSFER_ADD) && t.buffer.type != RG_F32)
      throw rg::error(RG_E_OPERATION, "shm: expected RG_F32 for a receive that adds, got another type");
    from->receive(t, bytes);
    return RG_OK;
  }

  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    if (!sleep_.load()) throw rg::error(RG_E_OPERATION, "shm: expected listen() before poll()");
    if (waiting_.is_armed()) get_up();
    std::uint64_t start = 0, idle_since = 0; // 0: clock not read yet
    for (;;) {
      const bool moved = progress();
      if (!home_.completions.empty()) return hand_out(out);
      if (take_wake_up()) return 0;
      const std::uint64_t now = rg::now_ns();
      look_for_deaths(now);
      if (start == 0) start = now;
      if (moved || idle_since == 0) idle_since = now;
      if (now - start >= timeout_ns) return 0;
      if (moved) continue;
      if (now - idle_since < spin_ns)
        relax();
      else
        sleep(std::min(timeout_ns - (now - start), slice_ns));
    }
  }

  void wake() noexcept {
    woken_.store(true);
    sleep_word* s = sleep_.load();
    if (!s || !s->wake()) return;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = ::write(waiting_.wake_up(), &one, sizeof one);
  }

  rg_status arm(std::int32_t& descriptor) {
    if (!sleep_.load()) throw rg::error(RG_E_OPERATION, "shm: expected listen() before arm()");
    descriptor = waiting_.arm(connected_);
    for (peer* p : connected_) p->announce_sleep();
    sleep_.load()->lie_down_elsewhere();
    return progress() || !home_.completions.empty() || woken_.load() ? RG_AGAIN : RG_OK;
  }

  void cancel(std::uint32_t rank) {
    peer* p = home_.find(rank);
    if (!p) return;
    p->cancel();
    for (auto& g : groups_)
      if (g->has(rank)) g->end(RG_E_CANCELLED);
  }

  void cancel_operation(std::uint64_t cookie) {
    for (peer* p : connected_)
      if (p->cancel_operation(cookie)) return;
  }

  // Messages lie in memory that the peers have mapped, which outlives this instance. So they count as delivered, and
  // close() waits for nothing.
  void close(std::uint64_t) {
    for (peer* p : connected_) p->leave();
  }

  rg_counters counters() const { return home_.counters; }

  std::span<const rg_counter> own_counters() {
    own_counters_ = {rg::counter("eager_messages", home_.eager_messages),
                     rg::counter("direct_messages", home_.direct_messages), rg::counter("sleeps", sleeps_)};
    return own_counters_;
  }

  void* allocate(rg_region region, std::uint64_t bytes, const rg_memory& memory) {
    if (memory.place != RG_MEMORY_HOST) return nullptr;
    void* address = home_.memory.allocate(bytes);
    regions_[region] = {address, bytes, std::nullopt};
    return address;
  }
  void remove(rg_region region) noexcept {
    const auto it = regions_.find(region);
    if (it == regions_.end()) return;
    if (it->second.key) withdraw(home_, *it->second.key);
    home_.memory.free(it->second.address);
    regions_.erase(it);
  }

  static constexpr std::uint32_t key_bytes = sizeof(region_key);
  void expose(rg_region region, void* key) {
    const auto it = regions_.find(region);
    if (it == regions_.end())
      throw rg::error(RG_E_OPERATION, "shm: peers reach regions that this transport allocated; region " +
                                          std::to_string(region) + " is none of them");
    allocation& a = it->second;
    if (!a.key) a.key = shm::expose(home_, home_.memory.offset_of(a.address), a.bytes);
    std::memcpy(key, &*a.key, sizeof *a.key);
    uses_one_sided_ = true;
  }
  rg_status put(const rg_one_sided_transfer& t) { return begin(t, true); }
  rg_status get(const rg_one_sided_transfer& t) { return begin(t, false); }

  std::uint32_t split(std::span<const std::uint32_t> members) {
    groups_.push_back(std::make_unique<group>(home_, members, timeout_ns_));
    return static_cast<std::uint32_t>(groups_.size() - 1);
  }
  bool offers(std::uint32_t kind, std::uint32_t reduction, std::uint32_t type, std::uint32_t wire) const noexcept {
    if (wire) return false;
    switch (kind) {
    case RG_OP_ALL_REDUCE:
    case RG_OP_REDUCE_SCATTER: return reduction == RG_SUM && type == RG_F32;
    case RG_OP_ALL_GATHER:
    case RG_OP_BROADCAST: return rg::size_of(type) > 0;
    default: return false;
    }
  }
  rg_status begin(const rg_collective& c) {
    const rg_buffer& whole = c.kind == RG_OP_REDUCE_SCATTER ? c.source : c.target;
    const std::size_t element = rg::size_of(whole.type);
    const char* why = c.group >= groups_.size()                          ? "a group that does not exist"
                      : !offers(c.kind, c.reduction, whole.type, c.wire) ? "a kind or type that shm lacks"
                      : whole.count > UINT64_MAX / element               ? "a size above 2^64 bytes"
                      : (!c.source_address && c.source.count > 0) || (!c.target_address && c.target.count > 0)
                          ? "a buffer without bytes"
                          : nullptr;
    if (why) throw rg::error(RG_E_OPERATION, std::string("shm: a collective has ") + why);
    groups_[c.group]->begin({.kind = c.kind,
                             .source = static_cast<const std::byte*>(c.source_address),
                             .target = static_cast<std::byte*>(c.target_address),
                             .count = whole.count,
                             .element = element,
                             .root = c.kind == RG_OP_BROADCAST ? c.root : 0,
                             .counts = c.counts,
                             .cookie = c.cookie});
    return RG_OK;
  }

private:
  // Returns the bytes of each ring of a rank with this number of peers. Large rings have room for eager messages of
  // several hundred KiB; with many peers they would take too much memory.
  std::uint64_t ring_bytes(std::uint64_t peers) const {
    constexpr std::uint64_t all = 8 << 20, least = 256 << 10, most = 4 << 20, least_given = 16 << 10;
    const std::uint64_t bytes = given_ring_ ? std::max(given_ring_, least_given)
                                            : std::clamp(all / std::max<std::uint64_t>(peers, 1), least, most);
    return round_up(bytes, 4 * cache_line);
  }

  struct allocation {
    void* address;
    std::uint64_t bytes;
    std::optional<region_key> key; // if it was exposed
  };

  rg_status begin(const rg_one_sided_transfer& t, bool writes) {
    for (std::size_t i = 0; i < connected_.size(); ++i) {
      if (connected_[i]->rank() != t.peer) continue;
      uses_one_sided_ = true;
      one_sided_[i].begin(t, writes);
      return RG_OK;
    }
    throw rg::error(RG_E_OPERATION, "shm: rank " + std::to_string(home_.rank) + " cannot put to or get from rank " +
                                        std::to_string(t.peer) + ": they are not connected");
  }

  struct destination {
    peer* other;
    std::uint64_t bytes;
  };
  destination check(const rg_transfer& t, const char* what) const {
    peer* p = home_.find(t.peer);
    const char* why = !p                          ? ": they are not connected"
                      : t.lane >= home_.lanes     ? " on a lane that does not exist"
                      : !t.address && t.bytes > 0 ? " of a buffer without bytes"
                                                  : nullptr;
    if (why)
      throw rg::error(RG_E_OPERATION, "shm: rank " + std::to_string(home_.rank) + " cannot " + what + " rank " +
                                          std::to_string(t.peer) + why);
    return {p, t.bytes};
  }

  // Makes one round of progress over all peers, lanes and groups. Returns false if nothing moved.
  bool progress() {
    for (peer* p : connected_) p->look();
    bool moved = progress_lane(0);
    for (auto& g : groups_) moved |= g->progress();
    for (std::size_t i = 0; uses_one_sided_ && i < one_sided_.size(); ++i) {
      if (!one_sided_[i].progress()) continue;
      moved = true;
      progress_lane(0); // it waits for at most one unit of work
    }
    for (std::uint32_t lane = 1; lane < home_.lanes; ++lane) {
      for (peer* p : connected_) {
        if (!p->progress(lane)) continue;
        moved = true;
        progress_lane(0);
      }
    }
    return moved;
  }
  bool progress_lane(std::uint32_t lane) {
    bool moved = false;
    for (peer* p : connected_) moved |= p->progress(lane);
    return moved;
  }

  std::uint32_t hand_out(std::span<rg_completion> out) {
    std::uint32_t n = 0;
    for (; n < out.size() && !home_.completions.empty(); ++n) {
      out[n] = home_.completions.front();
      home_.completions.pop_front();
    }
    return n;
  }

  bool take_wake_up() noexcept { return woken_.load() && woken_.exchange(false); }
  void sleep(std::uint64_t ns) {
    for (peer* p : connected_) p->announce_sleep();
    sleep_word& word = *sleep_.load();
    word.lie_down();
    if (progress() || !home_.completions.empty() || woken_.load())
      word.get_up();
    else {
      ++sleeps_;
      word.sleep(ns);
    }
  }

  // Ends the sleep that arm() began.
  void get_up() {
    sleep_.load()->get_up();
    if (waiting_.disarm()) looked_at_ = 0; // a peer has hung up: check at once
  }

  void look_for_deaths(std::uint64_t now) {
    if (now - looked_at_ < slice_ns) return;
    looked_at_ = now;
    sockets_.clear();
    for (peer* p : connected_) sockets_.push_back({p->socket(), POLLRDHUP, 0});
    if (::poll(sockets_.data(), sockets_.size(), 0) <= 0) return;
    for (std::size_t i = 0; i < connected_.size(); ++i) connected_[i]->look_for_death(sockets_[i].revents);
  }

  instance_state home_;
  const std::uint64_t given_ring_; // the parameter `ring`
  rg_world world_{};
  std::uint64_t timeout_ns_ = 0;
  std::optional<rendezvous> rendezvous_; // from listen() to connect()
  std::vector<peer*> connected_;         // the peers in home_.peers that are not null
  std::vector<std::unique_ptr<group>> groups_;
  std::vector<one_sided> one_sided_; // for each of connected_
  bool uses_one_sided_ = false;      // this rank has exposed a region, or begun a put or get
  std::map<rg_region, allocation> regions_;
  std::vector<pollfd> sockets_;
  std::uint64_t sleeps_ = 0; // of poll()
  std::array<rg_counter, 3> own_counters_{};
  std::uint64_t looked_at_ = 0;
  doorbell waiting_;
  std::atomic<bool> woken_{false};
  std::atomic<sleep_word*> sleep_{nullptr}; // in home_.control; null before listen()
};

} // namespace

RG_PLUGIN("shm", "0.1.0", rg::transport<shm_transport>("shm", "shared memory between the ranks of one host"))
