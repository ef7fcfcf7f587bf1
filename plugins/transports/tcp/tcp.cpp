// SPDX-License-Identifier: Apache-2.0
//
// Messages over TCP. One connection per peer and lane makes lanes independent. TCP's window is the flow control: data
// that is not received yet stays with its sender. poll() asks epoll what has become possible and moves bytes on
// connections that have operations posted, urgent lanes first, one chunk at a time so that none waits long.
//
//   rendezvous.hpp     connecting and authenticating
//   connection.hpp     one socket: messages, gathering, scattering, adding
//   wire.hpp           the bytes on it
//   ../common/posting_order.hpp  the order of receives
//
// bytes_sent and bytes_received count the bytes of the streams: payloads and their headers (wire.hpp), but not the
// handshake.
#include "connection.hpp"
#include "rendezvous.hpp"

#include <regatta/transport.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <sys/eventfd.h>

namespace {

using tcp::connection;

constexpr unsigned rounds_without_news = 4; // how many rounds of work may delay a look at epoll

class tcp_transport {
public:
  struct parameters {
    std::int64_t chunk = 512 << 10;
    std::int64_t depth = 4096;
    std::int64_t socket_buffer = 0;
  };
  static constexpr auto fields = rg::fields(
      rg::field("chunk", &parameters::chunk,
                "bytes that a connection moves (twice as many to end a message) before others have a turn, urgent "
                "lanes first")
          .unit(RG_UNIT_BYTES)
          .range(4096, 1 << 30),
      rg::field("depth", &parameters::depth, "sends, and as many receives, that may be posted for one peer and lane")
          .range(1, 1 << 20),
      rg::field("socket_buffer", &parameters::socket_buffer,
                "size of the kernel's socket buffers; 0: the kernel's default")
          .unit(RG_UNIT_BYTES)
          .range(0, 1 << 30));

  tcp_transport(const rg_host* host, const parameters& p)
      : host_(host), parameters_(p), shared_{.trace = rg::tracer(host), .chunk = static_cast<std::size_t>(p.chunk)} {
    if (!epoll_ || !wake_up_) tcp::fail_with_errno(RG_E_OPERATION, "tcp: cannot watch sockets");
    watch(wake_up_.get(), EPOLLIN, nullptr);
  }

  rg_transport_caps caps() const {
    return {.flags = RG_CAP_ADD | RG_CAP_SLEEP | RG_CAP_LONG_FAILS_SENDER | RG_CAP_ORDERED_RECEIVES,
            .memory = RG_MEMORY_HOST,
            .p2p = RG_P2P_INDEPENDENT};
  }

  rg_blob listen(const rg_world& world) {
    world_ = &world;
    rendezvous_.emplace(host_, world, static_cast<std::uint64_t>(parameters_.socket_buffer));
    return {rendezvous_->blob().data(), rendezvous_->blob().size()};
  }

  void connect(std::span<const rg_blob> blobs, std::uint64_t timeout_ns) {
    auto links = rendezvous_->connect(blobs, timeout_ns);
    rendezvous_.reset();
    for (std::uint32_t r = 0; r < world_->address_count && world_->address_count > 1; ++r)
      rails_.push_back("rail_" + std::to_string(r) + "_bytes");
    lanes_.resize(world_->lanes);
    peers_.resize(world_->size);
    for (tcp::link& l : links) {
      auto& c = *connections_.emplace_back(std::make_unique<connection>(shared_, std::move(l)));
      peers_[c.peer()].lanes.push_back(&c); // links are sorted by peer, then lane
      watch(c.native(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, &c);
    }
  }

  rg_status send(const rg_transfer& t) {
    connection& c = check(t);
    const std::uint64_t bytes = t.bytes;
    if (bytes > tcp::longest_message)
      throw rg::error(RG_E_OPERATION, "tcp: expected a message below 2^48 bytes, got " + std::to_string(bytes));
    if (c.sends() >= static_cast<std::size_t>(parameters_.depth)) return RG_AGAIN;
    c.post_send(t.address, bytes, t.cookie);
    lane_queues& lane = lanes_[c.lane()];
    if (!std::exchange(c.queued_to_send, true)) lane.to_send.push(&c);
    return RG_OK;
  }

  rg_status recv(const rg_transfer& t) {
    connection& c = check(t);
    const bool adds = t.flags & RG_TRANSFER_ADD;
    if (adds && t.buffer.type != RG_F32)
      throw rg::error(RG_E_OPERATION, "tcp: expected RG_F32 for a receive that adds, got another type");
    if (c.receives() >= static_cast<std::size_t>(parameters_.depth)) return RG_AGAIN;
    c.post_receive(t.address, t.bytes, adds, t.cookie);
    enqueue(c);
    latest_ = &c;
    return RG_OK;
  }

  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    std::optional<clock::time_point> start;
    if (armed_) asleep_.store(armed_ = false);
    for (;;) {
      // Operations that were just posted can often progress without asking epoll.
      if (idle() || unasked_++ == rounds_without_news) gather(0);
      const bool more = visit();
      const std::uint32_t count = hand_over(out);
      if (take_wake_up() || count > 0 || timeout_ns == 0) return count;
      const auto now = clock::now();
      if (!start) start = now;
      const auto waited = static_cast<std::uint64_t>((now - *start).count());
      if (waited >= timeout_ns) return 0;
      if (more) continue;
      if (waited >= spin_ns)
        sleep(timeout_ns - waited);
      else if (latest_ && latest_->awaits_short_message()) // reading finds it sooner than epoll reports it
        try_to_read(*latest_);
    }
  }

  // As sleep(), but the caller waits for the descriptor.
  rg_status arm(std::int32_t& descriptor) {
    descriptor = epoll_.get();
    asleep_.store(armed_ = true);
    const bool busy = woken_.load() || !shared_.finished.empty() || !shared_.released.empty() || !idle();
    return busy ? RG_AGAIN : RG_OK;
  }

  // Makes a system call only if a poll() sleeps. Both sides store first and load afterwards, in one total order: either
  // the sleeper sees that it was woken, or the waker sees that it sleeps.
  void wake() noexcept {
    woken_.store(true);
    if (!asleep_.load()) return;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = ::write(wake_up_.get(), &one, sizeof one); // fails only if the counter is full
  }

  void cancel(std::uint32_t rank) {
    if (rank < peers_.size()) lose(rank, RG_E_CANCELLED, "tcp: rank " + std::to_string(rank) + " was cancelled");
  }

  void cancel_operation(std::uint64_t cookie) {
    for (const auto& c : connections_)
      if (c->cancel(cookie)) return;
  }

  // A rank closes its end of a stream once it has received everything before the peer's end. So the peer's end tells
  // this rank that the peer has received everything.
  void close(std::uint64_t timeout_ns) {
    const auto start = clock::now();
    std::vector<connection*> open;
    for (auto& c : connections_)
      if (peers_[c->peer()].why.empty() && !c->ended()) {
        c->finish_sending();
        open.push_back(c.get());
      }
    std::optional<rg::error> broken; // the other connections must still be drained
    for (;;) {
      std::erase_if(open, [&](connection* c) {
        try {
          return c->drained();
        } catch (const rg::error& e) {
          if (!broken) broken = e;
          return true;
        }
      });
      if (open.empty()) break;
      const auto waited = static_cast<std::uint64_t>((clock::now() - start).count());
      if (waited >= timeout_ns)
        throw rg::error(RG_TIMEOUT, "tcp: rank " + std::to_string(open.front()->peer()) +
                                        " has not received all messages that were sent to it within " +
                                        std::to_string(timeout_ns / 1'000'000) + " ms");
      gather(timeout_ns - waited);
    }
    latest_ = nullptr;
    connections_.clear();
    peers_.clear();
    if (broken) throw *broken;
  }

  rg_counters counters() const { return shared_.counters; }

  std::span<const rg_counter> own_counters() {
    std::uint64_t retransmits = 0;
    std::vector<std::uint64_t> bytes(rails_.size());
    for (const auto& c : connections_) {
      retransmits += c->retransmits();
      if (!rails_.empty()) bytes[c->rail()] += c->bytes();
    }
    own_counters_ = {rg::counter("retransmits", retransmits), rg::counter("system_calls", shared_.system_calls),
                     rg::counter("epoll_waits", polls_)};
    for (std::size_t r = 0; r < rails_.size(); ++r) own_counters_.push_back(rg::counter(rails_[r].c_str(), bytes[r]));
    return own_counters_;
  }

private:
  using clock = std::chrono::steady_clock;
  static_assert(std::is_same_v<clock::period, std::nano>);

  // Connections of a lane that have work. `to_send` is visited first, in the order of the strategy's sends, because the
  // strategy staggers them. A receive that was posted before a send does not change this order.
  struct lane_queues {
    tcp::ring<connection*> to_send, with_work;
    bool empty() const { return to_send.empty() && with_work.empty(); }
  };
  struct peer {
    std::vector<connection*> lanes; // empty: not connected
    std::string why;                // why it is lost; empty: it is not
  };

  void watch(int fd, std::uint32_t events, connection* c) {
    epoll_event e{};
    e.events = events;
    e.data.ptr = c;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &e) != 0)
      tcp::fail_with_errno(RG_E_OPERATION, "tcp: cannot watch a socket");
  }

  // Returns the connection of a transfer; throws if the transfer is invalid or its peer is lost.
  connection& check(const rg_transfer& t) {
    if (t.peer >= peers_.size() || t.lane >= peers_[t.peer].lanes.size())
      throw rg::error(RG_E_OPERATION, "tcp: rank " + std::to_string(t.peer) + ", lane " + std::to_string(t.lane) +
                                          ": there is no connection");
    const peer& p = peers_[t.peer];
    connection& c = *p.lanes[t.lane];
    if (!p.why.empty()) throw rg::error(RG_E_PEER, p.why);
    if (c.ended()) throw rg::error(RG_E_PEER, departure(c));
    if (!t.address && t.bytes > 0)
      throw rg::error(RG_E_OPERATION, "tcp: the buffer is a ghost, which has no bytes: use a virtual transport");
    return c;
  }

  static std::string departure(const connection& c) {
    return "tcp: rank " + std::to_string(c.peer()) + " has closed its connection (lane " + std::to_string(c.lane()) +
           ")";
  }

  void enqueue(connection& c) {
    if (!std::exchange(c.queued, true)) lanes_[c.lane()].with_work.push(&c);
  }

  bool idle() const {
    return std::ranges::all_of(lanes_, [](const lane_queues& lane) { return lane.empty(); });
  }

  void try_to_read(connection& c) {
    c.became(true, false, false);
    enqueue(c);
  }

  // Asks epoll for events, and waits for them up to `timeout_ns`.
  void gather(std::uint64_t timeout_ns) {
    std::array<epoll_event, 64> events;
    const timespec t{static_cast<time_t>(timeout_ns / 1'000'000'000), static_cast<long>(timeout_ns % 1'000'000'000)};
    const bool endless = timeout_ns > std::uint64_t{INT64_MAX};
    unasked_ = 0;
    ++polls_;
    const int n =
        ::epoll_pwait2(epoll_.get(), events.data(), static_cast<int>(events.size()), endless ? nullptr : &t, nullptr);
    if (n < 0 && errno != EINTR) tcp::fail_with_errno(RG_E_OPERATION, "tcp: cannot wait for sockets");
    for (int i = 0; i < n; ++i) {
      const std::uint32_t what = events[static_cast<std::size_t>(i)].events;
      if (auto* c = static_cast<connection*>(events[static_cast<std::size_t>(i)].data.ptr)) {
        c->became(what & EPOLLIN, what & (EPOLLOUT | EPOLLERR), what & (EPOLLRDHUP | EPOLLHUP | EPOLLERR));
        enqueue(*c);
      } else {
        std::uint64_t wake_ups;
        [[maybe_unused]] const auto r = ::read(wake_up_.get(), &wake_ups, sizeof wake_ups); // resets it
      }
    }
  }

  void sleep(std::uint64_t timeout_ns) {
    asleep_.store(true);
    if (!woken_.load()) gather(timeout_ns);
    asleep_.store(false);
  }

  bool take_wake_up() { return woken_.load(std::memory_order_relaxed) && woken_.exchange(false); }

  // One round over all lanes, urgent ones first: visits connections with work until about a chunk has been moved.
  // Returns true if some have more to do.
  bool visit() {
    bool more = false;
    for (lane_queues& lane : lanes_) {
      const std::uint64_t before = shared_.counters.bytes_sent + shared_.counters.bytes_received;
      for (std::size_t n = lane.to_send.size() + lane.with_work.size(); n > 0; --n) {
        const bool sends = !lane.to_send.empty();
        connection& c = sends ? *lane.to_send.pop() : *lane.with_work.pop();
        (sends ? c.queued_to_send : c.queued) = false;
        if (visit(c)) enqueue(c);
        if (shared_.counters.bytes_sent + shared_.counters.bytes_received - before >= shared_.chunk) break;
      }
      more |= !lane.empty();
    }
    while (!shared_.released.empty()) {
      enqueue(*shared_.released.pop());
      more = true;
    }
    return more;
  }

  bool visit(connection& c) {
    try {
      const bool more = c.progress();
      if (c.ended()) leave(c);
      return more;
    } catch (const rg::error& e) {
      lose(c.peer(), e.status(), e.what(), c.error());
      return false;
    }
  }

  // The peer closed this lane properly; other lanes may still carry data that it sent before.
  void leave(connection& c) {
    if (c.sends() + c.receives() > 0) host_->fail(host_->context, RG_E_PEER, departure(c).c_str());
    c.finish_sending();
    c.abandon(RG_E_PEER);
  }

  // Ends all operations with a peer; `why` is the reason reported.
  void lose(std::uint32_t rank, rg_status status, const std::string& why, int error = 0) {
    peer& p = peers_[rank];
    if (!p.why.empty() || p.lanes.empty()) return;
    p.why = why;
    if (status != RG_E_CANCELLED) host_->fail(host_->context, status, why.c_str());
    for (connection* c : p.lanes) c->abandon(status, error);
  }

  std::uint32_t hand_over(std::span<rg_completion> out) {
    std::uint32_t count = 0;
    while (count < out.size() && !shared_.finished.empty()) out[count++] = shared_.finished.pop();
    return count;
  }

  const rg_host* host_;
  const parameters parameters_;
  const rg_world* world_ = nullptr;
  tcp::descriptor epoll_{::epoll_create1(EPOLL_CLOEXEC)};
  tcp::descriptor wake_up_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::atomic<bool> woken_{false}, asleep_{false};
  bool armed_ = false;      // from arm() until the next poll()
  unsigned unasked_ = 0;    // rounds since epoll was asked last
  std::uint64_t polls_ = 0; // calls of epoll
  std::vector<rg_counter> own_counters_;
  std::vector<std::string> rails_;            // names of the counters of rails, by rail; empty: there is one rail
  connection* latest_ = nullptr;              // the connection of the latest receive
  std::optional<tcp::rendezvous> rendezvous_; // from listen() until connect() has succeeded
  tcp::common shared_;
  std::vector<std::unique_ptr<connection>> connections_;
  std::vector<peer> peers_; // by rank
  std::vector<lane_queues> lanes_;
};

} // namespace

RG_PLUGIN("tcp", "0.1.0", rg::transport<tcp_transport>("tcp", "messages over TCP, a connection for each peer and lane"))
