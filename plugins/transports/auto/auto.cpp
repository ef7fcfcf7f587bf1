// SPDX-License-Identifier: Apache-2.0
//
// Two transports in one: `inside` between ranks of one host, `between` for ranks of different hosts. listen()
// determines on which of them this rank has peers. A side without peers is not opened and costs nothing, so that on one
// host this transport is `inside` alone. A rank with operations on one side sleeps on that side, one with operations on
// both sleeps on both at once (extension regatta.wait/1), which takes more system calls.
//
// A group's native collectives run on the side that connects all of its members. A collective is offered if every side
// that has native collectives offers it.
#include <regatta/clock.hpp>
#include <regatta/nested.hpp>
#include <regatta/transport.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include <poll.h>

namespace {

constexpr std::uint64_t alone_ns = 50'000; // a side's turn to sleep where not both can be waited for at once

class auto_transport {
public:
  struct parameters {
    std::string inside = "shm";
    std::string between = "tcp";
  };
  static constexpr auto fields = rg::fields(
      rg::field("inside", &parameters::inside, "transport between ranks of one host, with default parameters"),
      rg::field("between", &parameters::between, "transport between hosts, with default parameters"));

  auto_transport(const rg_host* host, const parameters& p) : inside_(host, p.inside), between_(host, p.between) {}

  rg_transport_caps caps() const {
    const rg_transport_caps a = inside_.transport.caps(), b = between_.transport.caps();
    if ((a.flags | b.flags) & (RG_CAP_VIRTUAL | RG_CAP_NONE))
      throw rg::error(RG_E_CONFIG, "auto: expected transports that connect ranks in real time, got inside = \"" +
                                       inside_.transport.id() + "\" and between = \"" + between_.transport.id() + "\"");
    const std::uint32_t both = RG_CAP_ADD | RG_CAP_SLEEP | RG_CAP_LONG_FAILS_SENDER,
                        either = RG_CAP_EXACT_SIZE | RG_CAP_CANCEL_ALL;
    // A side without collectives does not limit how those of the other side add.
    const auto adds_in_order = [](const side& s, const rg_transport_caps& c) {
      return !s.native.split || (c.flags & RG_CAP_ASCENDING_SUMS);
    };
    const std::uint32_t ascending =
        adds_in_order(inside_, a) && adds_in_order(between_, b) ? std::uint32_t{RG_CAP_ASCENDING_SUMS} : 0;
    return {.flags = (a.flags & b.flags & both) | ((a.flags | b.flags) & either) | ascending,
            .memory = a.memory & b.memory,
            .p2p = std::max(a.p2p, b.p2p), // the more restricted one: values ascend from independent to none
            .own_threads = a.own_threads + b.own_threads};
  }

  rg_blob listen(const rg_world& world) {
    host_of_.assign(world.host_of, world.host_of + world.size);
    rank_ = world.rank;
    for (std::uint32_t i = 0; i < world.peer_count; ++i) side_of(world.peers[i]).peers.push_back(world.peers[i]);
    blob_.clear();
    for (side* s : {&inside_, &between_}) {
      s->world = world;
      s->world.peers = s->peers.data();
      s->world.peer_count = static_cast<std::uint32_t>(s->peers.size());
      const rg_blob b = s->used() ? s->transport.listen(s->world) : rg_blob{};
      put(b.bytes);
      const auto* first = static_cast<const std::uint8_t*>(b.data);
      blob_.insert(blob_.end(), first, first + b.bytes);
    }
    only_ = !between_.used() ? &inside_ : !inside_.used() ? &between_ : nullptr;
    // A rank without peers opens `inside` all the same, to wait for wake().
    if (!inside_.used() && !between_.used()) inside_.transport.listen(inside_.world);
    return {blob_.data(), blob_.size()};
  }

  void connect(std::span<const rg_blob> blobs, std::uint64_t timeout_ns) {
    // [inside's bytes][inside's blob][between's bytes][between's blob]
    std::vector<rg_blob> inside(blobs.size()), between(blobs.size());
    for (std::size_t r = 0; r < blobs.size(); ++r) {
      if (blobs[r].bytes == 0) continue;
      std::span<const std::uint8_t> rest(static_cast<const std::uint8_t*>(blobs[r].data), blobs[r].bytes);
      inside[r] = cut(rest, r);
      between[r] = cut(rest, r);
    }
    const std::uint64_t deadline = rg::now_ns() + timeout_ns;
    if (inside_.used() || !between_.used()) inside_.transport.connect(inside, timeout_ns);
    if (between_.used()) between_.transport.connect(between, deadline - std::min(deadline, rg::now_ns()));
  }

  rg_status send(const rg_transfer& t) {
    side& s = of(t);
    return begun(s, s.transport.send(t));
  }
  rg_status recv(const rg_transfer& t) {
    side& s = of(t);
    return begun(s, s.transport.recv(t));
  }

  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    if (only_) return poll(*only_, timeout_ns, spin_ns, out);
    std::uint64_t start = 0;
    for (;;) {
      std::uint32_t count = poll(inside_, 0, 0, out);
      count += poll(between_, 0, 0, out.subspan(count));
      if (take_wake_up() || count > 0 || timeout_ns == 0) return count;
      const std::uint64_t now = rg::now_ns();
      if (start == 0) start = now;
      const std::uint64_t waited = now - start;
      if (waited >= timeout_ns) return 0;
      if (waited >= spin_ns) count = sleep(timeout_ns - waited, out);
      if (count > 0) return count;
    }
  }

  void wake() noexcept {
    woken_.store(true);
    inside_.transport.wake();
    between_.transport.wake();
  }
  void cancel(std::uint32_t peer) {
    if (peer < host_of_.size() && peer != rank_) side_of(peer).transport.cancel(peer);
  }
  void close(std::uint64_t timeout_ns) {
    const std::uint64_t deadline = rg::now_ns() + timeout_ns;
    if (inside_.used()) inside_.transport.close(timeout_ns);
    if (between_.used()) between_.transport.close(deadline - std::min(deadline, rg::now_ns()));
  }
  rg_counters counters() const {
    rg_counters sum{};
    for (const side* s : {&inside_, &between_}) {
      if (!s->used()) continue;
      const rg_counters c = s->transport.counters();
      sum.bytes_sent += c.bytes_sent;
      sum.bytes_received += c.bytes_received;
      sum.messages_sent += c.messages_sent;
      sum.messages_received += c.messages_received;
    }
    return sum;
  }
  // Of both sides; the engine adds up counters of one name.
  std::span<const rg_counter> own_counters() {
    own_counters_.clear();
    for (const side* s : {&inside_, &between_})
      if (s->used())
        for (const rg_counter& c : s->transport.own_counters()) own_counters_.push_back(c);
    return own_counters_;
  }

  // Memory comes from `inside`, whose peers may map it; `between` learns about it by add().
  void* allocate(rg_region region, std::uint64_t bytes, const rg_memory& memory) {
    void* address = inside_.used() ? inside_.transport.allocate(region, bytes, memory) : nullptr;
    if (!address)
      return between_.used() && !inside_.used() ? between_.transport.allocate(region, bytes, memory) : nullptr;
    if (between_.used()) between_.transport.add(region, address, bytes, memory);
    return address;
  }
  void add(rg_region region, void* address, std::uint64_t bytes, const rg_memory& memory) {
    for (side* s : {&inside_, &between_})
      if (s->used()) s->transport.add(region, address, bytes, memory);
  }
  void remove(rg_region region) noexcept {
    for (side* s : {&inside_, &between_})
      if (s->used()) s->transport.remove(region);
  }

  std::uint32_t split(std::span<const std::uint32_t> members) {
    const auto host = [&](std::uint32_t r) { return host_of_.at(r); };
    const bool one_host =
        std::all_of(members.begin(), members.end(), [&](auto r) { return host(r) == host(members[0]); });
    bool all_apart = true;
    for (std::size_t a = 0; a < members.size(); ++a)
      for (std::size_t b = 0; b < a; ++b) all_apart &= host(members[a]) != host(members[b]);
    side* s = one_host ? &inside_ : all_apart ? &between_ : nullptr;
    if (!s || !s->native.split)
      throw rg::error(RG_E_UNSUPPORTED,
                      "auto: expected a group whose members are all on one host, or each on a host of its "
                      "own, over a transport with collectives, got another one");
    std::uint32_t group = 0;
    rg::nested::check(
        s->native.split(s->transport.self(), members.data(), static_cast<std::uint32_t>(members.size()), &group));
    groups_.push_back({s, group});
    return static_cast<std::uint32_t>(groups_.size() - 1);
  }
  bool offers(std::uint32_t kind, std::uint32_t reduction, std::uint32_t type, std::uint32_t wire) const noexcept {
    const auto can = [&](const side& s) {
      return !s.native.split || s.native.offers(s.transport.self(), kind, reduction, type, wire);
    };
    return (inside_.native.split || between_.native.split) && can(inside_) && can(between_);
  }
  rg_status begin(const rg_collective& c) {
    if (c.group >= groups_.size())
      throw rg::error(RG_E_OPERATION, "auto: expected a group from split(), got number " + std::to_string(c.group));
    const group_of& g = groups_[c.group];
    rg_collective inner = c;
    inner.group = g.number;
    return begun(*g.home, rg::nested::check(g.home->native.begin(g.home->transport.self(), &inner)));
  }

private:
  struct side {
    side(const rg_host* host, const std::string& id)
        : transport(host, id.c_str()), wait(transport.extension<rg_wait>(RG_EXT_WAIT)) {
      if (const auto* c = transport.extension<rg_collectives>(RG_EXT_COLLECTIVES)) native = rg::copy_versioned(*c);
    }
    bool used() const { return !peers.empty(); }
    rg::nested transport;
    const rg_wait* wait; // null: the side cannot be waited for together with the other one
    rg_collectives native{};
    std::vector<std::uint32_t> peers;
    rg_world world{};
    std::uint64_t outstanding = 0; // operations whose completion poll() has not returned
  };
  struct group_of {
    side* home;
    std::uint32_t number; // number on that side
  };

  side& side_of(std::uint32_t rank) { return host_of_[rank] == host_of_[rank_] ? inside_ : between_; }
  side& of(const rg_transfer& t) {
    if (t.peer >= host_of_.size() || t.peer == rank_)
      throw rg::error(RG_E_OPERATION, "auto: rank " + std::to_string(t.peer) + ": there is no connection");
    return side_of(t.peer);
  }
  // Counts an operation that has begun (RG_OK); after RG_AGAIN it has not. Returns `status`.
  static rg_status begun(side& s, rg_status status) {
    s.outstanding += status == RG_OK;
    return status;
  }
  static std::uint32_t poll(side& s, std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    const std::uint32_t count = s.transport.poll(timeout_ns, spin_ns, out);
    s.outstanding -= count;
    return count;
  }

  void put(std::uint64_t number) {
    const auto* first = reinterpret_cast<const std::uint8_t*>(&number);
    blob_.insert(blob_.end(), first, first + sizeof number);
  }
  static rg_blob cut(std::span<const std::uint8_t>& rest, std::size_t rank) {
    std::uint64_t bytes = UINT64_MAX;
    if (rest.size() >= sizeof bytes) {
      std::memcpy(&bytes, rest.data(), sizeof bytes);
      rest = rest.subspan(sizeof bytes);
    }
    if (bytes > rest.size())
      throw rg::error(RG_E_PEER, "auto: expected the two addresses of rank " + std::to_string(rank) +
                                     ", got other bytes: use the same transports on all ranks");
    const rg_blob blob{rest.data(), bytes};
    rest = rest.subspan(bytes);
    return blob;
  }

  bool take_wake_up() { return woken_.load(std::memory_order_relaxed) && woken_.exchange(false); }

  // Sleeps until a side has something to do; may return early. Returns the completions of a side that it polled.
  std::uint32_t sleep(std::uint64_t timeout_ns, std::span<rg_completion> out) {
    if (!inside_.outstanding != !between_.outstanding) // nothing can complete on the other side; wake() wakes both
      return poll(inside_.outstanding ? inside_ : between_, timeout_ns, 0, out);
    if (!inside_.wait || !between_.wait) {
      // Polls each side in turn, for a moment. Completions may be found that much later, but the rank does not spin.
      const std::uint64_t turn = std::min(timeout_ns, alone_ns);
      const std::uint32_t count = poll(inside_, turn, 0, out);
      return count + (count ? 0 : poll(between_, turn, 0, out));
    }
    std::array<pollfd, 2> both{};
    for (std::size_t i = 0; i < both.size(); ++i) {
      const side& s = i == 0 ? inside_ : between_;
      std::int32_t descriptor = -1;
      if (rg::nested::check(s.wait->arm(s.transport.self(), &descriptor)) == RG_AGAIN) return 0;
      both[i] = {descriptor, POLLIN, 0};
    }
    const timespec t{static_cast<time_t>(timeout_ns / 1'000'000'000), static_cast<long>(timeout_ns % 1'000'000'000)};
    const bool endless = timeout_ns > std::uint64_t{INT64_MAX};
    if (::ppoll(both.data(), both.size(), endless ? nullptr : &t, nullptr) < 0 && errno != EINTR)
      throw rg::error(RG_E_OPERATION, std::string("auto: cannot wait: ") + std::strerror(errno));
    return 0;
  }

  side inside_, between_;
  side* only_ = nullptr; // the only side in use; null if both have peers
  std::vector<std::uint32_t> host_of_;
  std::uint32_t rank_ = 0;
  std::vector<std::uint8_t> blob_;
  std::vector<group_of> groups_;
  std::vector<rg_counter> own_counters_; // the latest of own_counters()
  std::atomic<bool> woken_{false};
};

} // namespace

RG_PLUGIN("auto", "0.1.0", rg::transport<auto_transport>("auto", "shm between ranks of a host, tcp between hosts"))
