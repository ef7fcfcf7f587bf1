// SPDX-License-Identifier: Apache-2.0
//
// Slows another transport down: every rank gets a simulated network card with a rate, a latency and jitter. Strategies
// can be compared under bandwidths that the machine does not have, without root.
//
// A message is sent as a header, which has its length, and then in chunks, urgent lanes first, each at the time at which
// it would arrive; the header goes with the first chunk:
//
//     leaves  = max(the chunk before has left, the message was posted) + bytes / bandwidth
//     arrives = leaves + latency + jitter, never before the previous chunk of its lane
//
// The inner transport then carries it as fast as it can. The receiver's card has the same rate: a message completes
// when its last chunk has also passed that card,
//
//     passed = max(arrived, max(the chunk before has passed, arrived - earlier) + bytes / bandwidth)
//
// so that several senders share it. `earlier` is the longer of two times: that of the chunk, whose first byte came so
// much earlier, and that of a burst, which lets a receiver catch up that woke up late. Receives into overlapping
// memory are posted one after the other: chunks of the later ones pass in the time in which the card was idle since
// their message came. Times are computed, not measured, so that the mean rate is exact however late a rank wakes up.
// Time that the inner transport needs is added; it is the limit if `bandwidth` exceeds the inner transport's own.
//
// Native collectives are not offered: they would bypass the limit. Regions are passed on: a receiver reads a peer's
// memory only when it receives a chunk, which the sender delays.
#include "../common/posting_order.hpp"
#include "../common/ring.hpp"

#include <regatta/clock.hpp>
#include <regatta/nested.hpp>
#include <regatta/random.hpp>
#include <regatta/transport.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

namespace {

using transports::posting_order;
using transports::ring;

constexpr std::uint64_t chunk_unit = 64; // bytes; chunks are multiples of it, but for the last of a message

// The time of a chunk on the card and its size, unless `quantum` is set. Sender and receiver wake up for each chunk. So
// the chunks of a message are large, unless messages to several peers share the card: then they are small, as frames on
// a wire are, and the peers' cards are busy alike. With small chunks alone a ring of 32 ranks kept two cores busy for
// two thirds of the time, and was a fifth slower than its links; with large ones alone, steps of `sharded` took 7 %
// longer (docs/results/simulation.md).
struct chunk_size {
  double seconds;
  std::uint64_t least, most;

  std::uint64_t at(double bits_per_second) const { // a multiple of chunk_unit
    const double fitting = bits_per_second / 8 * seconds;
    return static_cast<std::uint64_t>(std::clamp<double>(fitting, least, most)) / chunk_unit * chunk_unit;
  }
};
constexpr chunk_size large_chunk = {1e-3, 16 << 10, 1 << 20}, small_chunk = {250e-6, 4 << 10, 1 << 20};
constexpr std::uint64_t burst_ns = 500'000;
constexpr std::uint32_t most_in_flight = 64; // chunks of a receive that are posted at a time

struct message_header {
  std::uint64_t length; // of the message in bytes
  std::uint64_t chunk;  // bytes of each of its chunks but the last, a multiple of chunk_unit
};

constexpr std::uint64_t retry_ns = 1'000'000; // until an operation is retried for which the inner transport had no room

class shaped {
public:
  struct parameters {
    std::string over = "tcp";
    double bandwidth = 1e9;
    std::int64_t latency = 0;
    std::int64_t jitter = 0;
    std::int64_t quantum = 0;
  };
  static constexpr auto fields = rg::fields(
      rg::field("over", &parameters::over, "inner transport, with default parameters"),
      rg::field("bandwidth", &parameters::bandwidth, "of each rank, in each direction")
          .unit(RG_UNIT_BITS_PER_SECOND)
          .range(1e3, 1e15),
      rg::field("latency", &parameters::latency, "added to every message").unit(RG_UNIT_NANOSECONDS).range(0, 10e9),
      rg::field("jitter", &parameters::jitter,
                "largest extra latency, drawn uniformly from 0; the order on a lane is kept")
          .unit(RG_UNIT_NANOSECONDS)
          .range(0, 10e9),
      rg::field("quantum", &parameters::quantum,
                "bytes sent at once; 0: as many as take 1 ms, or 250 us if several peers are sent to")
          .unit(RG_UNIT_BYTES)
          .range(0, 1 << 30));

  shaped(const rg_host* host, const parameters& p)
      : host_(host), parameters_(p), ns_per_byte_(8e9 / p.bandwidth), inner_(host, p.over.c_str()) {
    if (inner_.caps().flags & RG_CAP_VIRTUAL)
      throw rg::error(RG_E_CONFIG, "shaped: expected an inner transport in real time, got over = \"" + p.over +
                                       "\", which keeps a virtual clock: use \"tcp\" or \"shm\"");
    const std::uint64_t given =
        std::max<std::uint64_t>(static_cast<std::uint64_t>(p.quantum) / chunk_unit, 1) * chunk_unit;
    large_ = p.quantum ? given : large_chunk.at(p.bandwidth);
    small_ = p.quantum ? given : small_chunk.at(p.bandwidth);
  }

  rg_transport_caps caps() const {
    rg_transport_caps c = inner_.caps();
    // Receives of chunks have the exact size, so the caller's need not. Chunks are bytes, so the engine must convert
    // types.
    c.flags &= ~(std::uint32_t{RG_CAP_EXACT_SIZE} | std::uint32_t{RG_CAP_CONVERT});
    c.flags |= RG_CAP_ORDERED_RECEIVES;
    c.memory &= RG_MEMORY_HOST;
    return c;
  }
  rg_blob listen(const rg_world& world) {
    size_ = world.size;
    seed_ = world.rank;
    ready_.resize(world.lanes);
    lost_.resize(world.size, RG_OK);
    by_rank_.resize(std::size_t{world.size} * world.lanes);
    for (std::uint32_t i = 0; i < world.peer_count; ++i)
      for (std::uint32_t lane = 0; lane < world.lanes; ++lane) {
        connections_.push_back(std::make_unique<connection>(connection{.peer = world.peers[i], .lane = lane}));
        by_rank_.at(world.peers[i] * world.lanes + lane) = connections_.back().get();
      }
    return inner_.listen(world);
  }
  void connect(std::span<const rg_blob> blobs, std::uint64_t timeout_ns) { inner_.connect(blobs, timeout_ns); }

  rg_status send(const rg_transfer& t) {
    connection& c = check(t);
    if (lost_[t.peer] != RG_OK)
      throw rg::error(lost_[t.peer],
                      "shaped: cannot send to rank " + std::to_string(t.peer) + ": it is lost, or was cancelled");
    operation* o = take(t);
    o->posted = rg::now_ns();
    if (c.sends.empty()) ready_[c.lane].push(&c);
    c.sends.push(o);
    return RG_OK;
  }
  rg_status recv(const rg_transfer& t) {
    connection& c = check(t);
    operation* o = take(t);
    o->receives = true;
    const auto* first = static_cast<const std::byte*>(t.address);
    o->ticket = order_.enter(first, first + o->length, &c);
    c.receives.push(o);
    return RG_OK;
  }

  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    const std::uint64_t start = rg::now_ns();
    std::array<rg_completion, 64> got;
    for (std::uint64_t wait = 0, spin = 0;;) {
      const std::uint32_t count = inner_.poll(wait, spin, got);
      const std::uint64_t now = rg::now_ns();
      for (std::uint32_t i = 0; i < count; ++i) inner_ended(got[i], now);
      const std::uint64_t next = advance(now);
      if (const std::uint32_t n = hand_over(out)) return n;
      if (woken_.load(std::memory_order_relaxed) && woken_.exchange(false)) return 0;
      const std::uint64_t waited = now - start;
      if (waited >= timeout_ns) return 0;
      wait = count == got.size() ? 0 : std::min(timeout_ns - waited, next - std::min(next, now));
      spin = std::min(wait, spin_ns - std::min(spin_ns, waited));
    }
  }
  void wake() noexcept {
    woken_.store(true);
    inner_.wake();
  }

  void cancel(std::uint32_t peer) { lose(peer, RG_E_CANCELLED); }
  void close(std::uint64_t timeout_ns) { inner_.close(timeout_ns); }
  // Bytes are those of the inner transport, headers included; messages are the caller's.
  rg_counters counters() const {
    rg_counters c = inner_.counters();
    c.messages_sent = sent_;
    c.messages_received = received_;
    return c;
  }
  std::span<const rg_counter> own_counters() const { return inner_.own_counters(); }

  void* allocate(rg_region region, std::uint64_t bytes, const rg_memory& memory) {
    return inner_.allocate(region, bytes, memory);
  }
  void add(rg_region region, void* address, std::uint64_t bytes, const rg_memory& memory) {
    inner_.add(region, address, bytes, memory);
  }
  void remove(rg_region region) noexcept { inner_.remove(region); }

private:
  struct connection;

  struct operation {
    message_header* header;  // as it is sent
    rg_buffer header_buffer; // where the header is
    rg_transfer transfer;
    std::uint64_t length;    // of the message; receives: of the buffer, until the header has arrived
    std::uint64_t scheduled; // bytes that have left the card; receives: bytes posted to the inner transport
    std::uint64_t posted;    // sends: time of posting
    std::uint64_t passed;    // receives: when the data received so far has passed the card
    // Receives that wait for overlapping ones: when the header came, what in_busy_ was then, when the wait was over.
    std::uint64_t came, busy_then, begun;
    std::uint32_t pending; // chunks, header included, that were scheduled and have not ended
    std::uint32_t ticket;  // receives: in order_
    rg_status status;
    bool receives, announced; // announced: the header has left the card; receives: has arrived
    bool waits;               // receives: for overlapping ones
    bool queued;              // in a queue of its connection
  };

  // A chunk that has left the card and has not arrived. The inner transport gets it at time `due`, the first one of a
  // message after the header.
  struct chunk {
    operation* of;
    std::uint64_t from, bytes; // range of the message; bytes 0: a message without any
    std::uint64_t due;
    bool header; // has yet to be given to the inner transport
  };

  // A lane to one peer, in both directions.
  struct connection {
    std::uint32_t peer, lane;
    ring<operation*> sends; // not wholly off the card
    ring<chunk> on_the_way;
    std::uint64_t last_due = 0;
    ring<operation*> receives; // not wholly posted to the inner transport
    bool header_asked = false; // a receive for the header of the first one is posted
  };

  struct landing {
    operation* of;
    std::uint64_t at;
  };

  connection& check(const rg_transfer& t) const {
    connection* c = t.lane < ready_.size() && t.peer < size_ ? by_rank_[t.peer * ready_.size() + t.lane] : nullptr;
    const char* wrong = nullptr;
    if (!c) wrong = "there is no connection";
    if (!t.address && t.bytes > 0) wrong = "the buffer is a ghost, which has no bytes";
    if (wrong)
      throw rg::error(RG_E_OPERATION,
                      "shaped: rank " + std::to_string(t.peer) + ", lane " + std::to_string(t.lane) + ": " + wrong);
    return *c;
  }

  // Operations of a block lie side by side with their headers, which are in a region of the inner transport.
  struct block {
    std::array<message_header, 64> headers{};
    std::array<operation, 64> operations{};
    rg_region region = 0;
  };

  operation* take(const rg_transfer& t) {
    if (free_.empty()) {
      block& b = *blocks_.emplace_back(std::make_unique<block>());
      b.region = inner_.add_own(b.headers.data(), sizeof(b.headers));
      for (std::size_t i = 0; i < b.operations.size(); ++i) {
        b.operations[i].header = &b.headers[i];
        b.operations[i].header_buffer = {b.region, RG_U8, i * sizeof(message_header), sizeof(message_header)};
        free_.push(&b.operations[i]);
      }
    }
    operation* o = free_.pop();
    *o = {.header = o->header, .header_buffer = o->header_buffer};
    o->transfer = t;
    o->length = t.bytes;
    o->queued = true;
    return o;
  }

  std::uint64_t duration(std::uint64_t bytes) const {
    return static_cast<std::uint64_t>(std::llround(static_cast<double>(bytes) * ns_per_byte_));
  }

  // Does all that is due, and returns the time at which something will be due next.
  std::uint64_t advance(std::uint64_t now) {
    again_ = UINT64_MAX;
    while (out_free_ <= now && leave_next()) {
    }
    std::uint64_t next = UINT64_MAX;
    for (auto& lane : ready_)
      if (!lane.empty()) next = out_free_;
    for (auto& c : connections_) {
      pump(*c, now);
      while (!c->on_the_way.empty() && c->on_the_way.front().due <= now && carry(*c, now)) c->on_the_way.pop();
      // A chunk that is due and still queued found no room: again_ has the time of its next try.
      if (!c->on_the_way.empty() && c->on_the_way.front().due > now) next = std::min(next, c->on_the_way.front().due);
    }
    while (!landings_.empty() && landings_.front().at <= now) end(landings_.pop().of);
    if (!landings_.empty()) next = std::min(next, landings_.front().at);
    return std::min(next, again_);
  }

  // ------------------------------------------------------------------------------------------------------ sending ---

  // Lets the next chunk leave the card: on the most urgent lane, with connections taking turns. Returns false if there
  // is none.
  bool leave_next() {
    const auto lane = std::find_if(ready_.begin(), ready_.end(), [](auto& l) { return !l.empty(); });
    if (lane == ready_.end()) return false;
    connection& c = *lane->pop();
    if (c.sends.empty()) return true; // its peer was lost
    operation* o = c.sends.front();
    if (o->status == RG_OK) {
      const bool first = !std::exchange(o->announced, true);
      if (first) *o->header = {.length = o->length, .chunk = lane->empty() ? large_ : small_};
      const std::uint64_t bytes = std::min(o->header->chunk, o->length - o->scheduled);
      out_free_ = std::max(out_free_, o->posted) + duration(bytes + (first ? sizeof(message_header) : 0));
      c.last_due = std::max(c.last_due, out_free_ + delay());
      c.on_the_way.push({o, o->scheduled, bytes, c.last_due, first});
      o->pending += (first ? 1 : 0) + (bytes ? 1 : 0);
      o->scheduled += bytes;
    }
    if (o->status != RG_OK || o->scheduled == o->length) {
      c.sends.pop()->queued = false;
      end_if_complete(o);
    }
    if (!c.sends.empty()) lane->push(&c);
    return true;
  }

  std::uint64_t delay() {
    const double jitter =
        rg::to_uniform(rg::random_bits(seed_, ++delays_)[0]) * static_cast<double>(parameters_.jitter);
    return static_cast<std::uint64_t>(parameters_.latency) + static_cast<std::uint64_t>(jitter);
  }

  // Passes the first chunk that is due to the inner transport. Returns false if that has no room now.
  bool carry(connection& c, std::uint64_t now) {
    chunk& p = c.on_the_way.front();
    operation* o = p.of;
    rg_status s = o->status;
    if (s == RG_OK && p.header) {
      s = post_header(*o);
      p.header = s != RG_OK;
    }
    if (s == RG_OK && p.bytes) {
      s = post(*o, p.from, p.bytes);
      if (s == RG_OK) p.bytes = 0;
    }
    if (s == RG_AGAIN) {
      again_ = std::min(again_, now + retry_ns);
      return false;
    }
    mark(*o, s);
    drop(p);
    return true;
  }

  // Gives up what the inner transport has not got of a chunk: all or nothing of it, or its bytes without the header.
  void drop(const chunk& p) {
    p.of->pending -= (p.header ? 1 : 0) + (p.bytes ? 1 : 0);
    end_if_complete(p.of);
  }

  // ---------------------------------------------------------------------------------------------------- receiving ---

  // Posts receives to the inner transport: the first receive's header, then its chunks, then the next one's header.
  void pump(connection& c, std::uint64_t now) {
    while (!c.receives.empty()) {
      operation* o = c.receives.front();
      rg_status s = RG_OK;
      if (o->status == RG_OK && !o->announced) {
        if (c.header_asked) return;
        s = post_header(*o);
        c.header_asked = s == RG_OK;
        o->pending += s == RG_OK;
      } else if (o->status == RG_OK) {
        o->waits = o->waits || !order_.may_start(o->ticket);
        if (!order_.may_start(o->ticket)) return;
        if (std::exchange(o->waits, false)) o->begun = now;
        while (s == RG_OK && o->scheduled < o->length) {
          if (o->pending >= most_in_flight) return;
          const std::uint64_t bytes = std::min(o->header->chunk, o->length - o->scheduled);
          s = post(*o, o->scheduled, bytes);
          o->scheduled += s == RG_OK ? bytes : 0;
          o->pending += s == RG_OK;
        }
      }
      if (s == RG_AGAIN) {
        again_ = std::min(again_, now + retry_ns);
        return;
      }
      mark(*o, s);
      if (o->status == RG_OK && (!o->announced || o->scheduled < o->length)) continue;
      c.header_asked = false;
      c.receives.pop()->queued = false;
      end_if_complete(o);
    }
  }

  // A header of `bytes` bytes comes with the first chunk and passes the receiver's card in no time.
  void header_came(operation& o, std::uint64_t bytes, std::uint64_t now) {
    o.came = now;
    o.busy_then = in_busy_;
    o.passed = std::max(now, in_free_);
    connection& c = check(o.transfer);
    c.header_asked = false;
    const std::uint64_t capacity = o.length;
    const bool adds = o.transfer.flags & RG_TRANSFER_ADD;
    o.announced = true;
    o.length = bytes == sizeof(message_header) ? o.header->length : 0; // the rest of a short header was not written
    if (bytes != sizeof(message_header))
      refuse(o, RG_E_PEER,
             "a header of " + std::to_string(bytes) + " bytes, expected " + std::to_string(sizeof(message_header)) +
                 ": use the same version of this transport on all ranks");
    else if (o.header->chunk == 0 || o.header->chunk % chunk_unit != 0)
      refuse(o, RG_E_PEER,
             "a header with chunks of " + std::to_string(o.header->chunk) + " bytes, expected a positive multiple of " +
                 std::to_string(chunk_unit) + ": use the same version of this transport on all ranks");
    else if (o.length > capacity || (adds && o.length % sizeof(float) != 0))
      refuse(o, RG_E_OPERATION,
             "a message of " + std::to_string(o.length) + " bytes" +
                 (o.length > capacity ? ", longer than the receive posted for it"
                                      : ", which is no whole number of floats to add"));
  }

  // Fails a receive because of `what` its peer sent, and loses the peer: the message's chunks have no receives, and
  // later messages of the lane could not be told apart from them.
  void refuse(operation& o, rg_status status, const std::string& what) {
    const std::string text = "shaped: rank " + std::to_string(o.transfer.peer) + " sent " + what;
    host_->fail(host_->context, status, text.c_str());
    o.status = status;
    lose(o.transfer.peer, RG_E_PEER);
  }

  // --------------------------------------------------------------------------------------------- both directions ---

  // An inner operation's cookie is the address of its operation.
  rg_status post(operation& o, std::uint64_t from, std::uint64_t bytes) {
    rg_transfer t = o.transfer;
    const bool adds = t.flags & RG_TRANSFER_ADD;
    t.address = static_cast<std::byte*>(t.address) + from;
    t.buffer.offset += from;
    t.buffer.type = adds ? RG_F32 : RG_U8;
    t.buffer.count = adds ? bytes / sizeof(float) : bytes;
    t.bytes = bytes;
    return post(t, o);
  }
  rg_status post_header(operation& o) {
    rg_transfer t = o.transfer;
    t.flags = 0;
    t.address = o.header;
    t.buffer = o.header_buffer;
    t.bytes = sizeof(message_header);
    return post(t, o);
  }
  rg_status post(rg_transfer& t, operation& o) {
    t.cookie = reinterpret_cast<std::uintptr_t>(&o);
    try {
      return o.receives ? inner_.recv(t) : inner_.send(t);
    } catch (const rg::error& e) {
      return e.status();
    }
  }

  void inner_ended(const rg_completion& c, std::uint64_t now) {
    auto* o = reinterpret_cast<operation*>(static_cast<std::uintptr_t>(c.cookie));
    --o->pending;
    mark(*o, c.status);
    if (o->receives && c.status == RG_OK) {
      if (o->announced)
        pass(*o, c.bytes, now);
      else if (o->status == RG_OK)
        header_came(*o, c.bytes, now);
    }
    end_if_complete(o);
  }

  // Bytes of a message have arrived: computes when they have passed the receiver's card.
  void pass(operation& o, std::uint64_t bytes, std::uint64_t now) {
    const std::uint64_t takes = duration(bytes), early = std::min(takes, idle_while_it_waited(o));
    in_busy_ += takes;
    in_free_ = std::max(in_free_, now - std::max(burst_ns, takes)) + takes - early;
    o.passed = early == takes ? std::max(o.passed, now) : std::max(now, in_free_);
  }

  // Returns the time that the receiver's card was idle while this message was there and its receive waited for others:
  // its bytes have passed then. The time that other messages have used since is left out.
  std::uint64_t idle_while_it_waited(const operation& o) const {
    const std::uint64_t waited = o.begun ? o.begun - o.came : 0, used = in_busy_ - o.busy_then;
    return waited > used ? waited - used : 0;
  }

  // Ends the operation unless it is queued or has chunks pending.
  void end_if_complete(operation* o) {
    if (o->pending > 0 || o->queued) return;
    if (o->receives) {
      order_.leave(o->ticket, [this](connection*) { again_ = 0; });
      if (o->status == RG_OK) return landings_.push({o, o->passed});
    }
    end(o);
  }
  void end(operation* o) {
    if (o->status == RG_OK) ++(o->receives ? received_ : sent_);
    finished_.push({.cookie = o->transfer.cookie, .status = o->status, .bytes = o->status == RG_OK ? o->length : 0});
    free_.push(o);
  }

  // Ends all operations with a peer: here if the inner transport does not have them yet, otherwise in later polls.
  void lose(std::uint32_t peer, rg_status status) {
    if (peer >= size_) return;
    for (auto& c : connections_) {
      if (c->peer != peer) continue;
      for (std::size_t i = 0; i < c->on_the_way.size(); ++i) mark(*c->on_the_way.at(i).of, status);
      for (std::size_t i = 0; i < c->sends.size(); ++i) mark(*c->sends.at(i), status);
      for (std::size_t i = 0; i < c->receives.size(); ++i) mark(*c->receives.at(i), status);
      while (!c->on_the_way.empty()) drop(c->on_the_way.pop());
      while (!c->sends.empty()) { // lost sends no longer wait for the card
        operation* o = c->sends.pop();
        o->queued = false;
        end_if_complete(o);
      }
    }
    if (lost_[peer] == RG_OK) lost_[peer] = status;
    inner_.cancel(peer);
    again_ = 0;
  }
  // Keeps the first error of the operation and, if a send failed, of its peer.
  void mark(operation& o, rg_status status) {
    if (o.status == RG_OK) o.status = status;
    rg_status& peer = lost_[o.transfer.peer];
    if (!o.receives && status != RG_OK && peer == RG_OK) peer = status;
  }

  std::uint32_t hand_over(std::span<rg_completion> out) {
    std::uint32_t count = 0;
    while (count < out.size() && !finished_.empty()) out[count++] = finished_.pop();
    return count;
  }

  const rg_host* host_;
  const parameters parameters_;
  const double ns_per_byte_;
  std::uint64_t large_, small_; // bytes of a chunk
  std::uint32_t size_ = 0;
  std::uint64_t seed_ = 0, delays_ = 0;
  std::vector<std::unique_ptr<connection>> connections_;
  std::vector<connection*> by_rank_;      // [rank][lane]; null: not connected
  std::vector<rg_status> lost_;           // by rank; RG_OK: not lost
  std::vector<ring<connection*>> ready_;  // by lane: connections with something to send
  std::uint64_t out_free_ = 0;            // when the card has sent everything scheduled so far
  std::uint64_t sent_ = 0, received_ = 0; // messages
  std::uint64_t in_free_ = 0;             // when all arrived data has passed the card
  std::uint64_t in_busy_ = 0;             // for how long the card has worked on arrived data
  std::uint64_t again_ = UINT64_MAX;      // when to retry operations that found no room
  posting_order<connection> order_;       // of receives into overlapping bytes
  ring<landing> landings_;                // receives that have arrived and have yet to pass the card
  ring<rg_completion> finished_;          // for poll() to return
  std::vector<std::unique_ptr<block>> blocks_;
  ring<operation*> free_;
  std::atomic<bool> woken_{false};
  rg::nested inner_; // destroyed first, because it uses operations
};

} // namespace

RG_PLUGIN("shaped", "0.1.0",
          rg::transport<shaped>("shaped", "another transport with limited bandwidth, latency and jitter"))
