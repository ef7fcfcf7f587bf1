// SPDX-License-Identifier: Apache-2.0
//
// Messages to and from one other rank.
//
// A message of up to `eager` bytes is copied into the ring and its send completes at once. A longer one that lies in
// the heap is only described there; when its receive is posted the receiver copies it, or adds it, straight from the
// sender's memory into its own, in chunks, and then passes the record, which completes the send. A longer one that lies
// elsewhere goes through the ring in parts. A message that is too long for its receive is passed over, and the record
// tells the sender so (unless it was eager: then its send has completed already).
//
// A peer is lost when it closed, cancelled us, died, or sent nonsense. What it had sent before can still be received,
// for its memory stays mapped here; everything else ends with RG_E_PEER.
#pragma once

#include "control.hpp"
#include "fifo.hpp"
#include "heap.hpp"

#include <memory>
#include <vector>

#include <sys/socket.h>

namespace shm {

class peer;

// Work is done in portions of at most this many bytes, so that an urgent lane waits for no more than one of them.
constexpr std::uint64_t portion = 256 << 10;

// What the parts of one instance share. [loop]
struct station {
  station(const rg_host* host_, std::uint64_t heap_bytes) : host(host_), memory(heap_bytes) {}

  void complete(std::uint64_t cookie, rg_status status, std::uint64_t bytes = 0) {
    completions.push_back({cookie, status, 0, bytes, 0});
  }
  // Why an operation that completes fails: completions carry no text.
  void report(rg_status status, const std::string& text) const { host->fail(host->context, status, text.c_str()); }
  peer* find(std::uint32_t r) const noexcept { return r < peers.size() ? peers[r].get() : nullptr; }

  const rg_host* host;
  heap memory;
  control_area control;
  std::uint32_t rank = 0, size = 0, lanes = 0;
  std::uint64_t eager = 0;
  std::vector<std::unique_ptr<peer>> peers; // by rank; null: we do not talk
  fifo<rg_completion> completions;
  rg_counters counters{};
  std::uint64_t receives_posted = 0, receives_ended = 0;
};

class peer {
public:
  peer(station& home, std::uint32_t rank, file_descriptor socket, control_area control, mapping memory);

  // [loop] Throws for a peer that is lost, but one whose last messages may still be received.
  void send(const rg_transfer& t, std::uint64_t bytes);
  void receive(const rg_transfer& t, std::uint64_t bytes);
  // [loop] Does what can be done on a lane, up to about a portion. False: there was nothing.
  bool progress(std::uint32_t lane);
  // [loop] Whether it has left or cancelled us, to be asked now and then; whether it has died, which takes a system
  // call.
  void look();
  void look_for_death(short events);
  // [loop] Tells it which of its messages are worth waking us for.
  void announce_sleep() noexcept;
  // [loop] Ends all operations with it; its sends once it is out of our heap.
  void cancel();
  // [main] Nothing more comes from us.
  void leave() noexcept;
  void wake() noexcept {
    if (control_.header().sleep.wake()) ::send(socket_.get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  std::uint32_t rank() const noexcept { return rank_; }
  bool is_lost() const noexcept { return lost_; }
  std::string loss() const { return "rank " + std::to_string(rank_) + " " + how_lost_; } // "rank 3 died"
  bool is_gone() const noexcept { return gone_; } // its process or instance is no more: it touches nothing
  int socket() const noexcept { return socket_.get(); }
  const mapping& memory() const noexcept { return memory_; }

private:
  struct outgoing {
    const std::byte* address;
    std::uint64_t bytes, cookie;
    std::uint64_t moved; // bytes in the ring so far
    std::uint64_t end;   // position in the ring at which it is acknowledged
    const record* last;  // the record that carries the outcome; null once it was read
    rg_status status;    // it
    bool is_eager;
  };
  struct incoming {
    std::byte* address;
    std::uint64_t capacity, cookie;
    std::uint64_t number;   // in the order of posting, over all peers and lanes
    std::uint64_t total;    // bytes of its message, once begun
    std::uint64_t moved;    // of them, how many are dealt with
    std::uint64_t asked_at; // receives_ended when may_begin() last said no
    rg_status status;
    bool adds, begun, is_free;
  };
  struct lane {
    ring_producer out;
    fifo<outgoing> sends;
    std::size_t in_ring = 0; // sends that are wholly in the ring: the first ones
    ring_consumer in;
    fifo<incoming> receives;
  };

  bool push_sends(lane& l);
  bool put(lane& l, outgoing& op);
  record* reserve(lane& l, std::uint64_t payload) noexcept;
  static void look_for_room(lane& l) noexcept;
  void published(lane& l, record* r, std::uint64_t payload) noexcept;
  bool retire_sends(lane& l);
  void end_send(lane& l, rg_status status);

  bool pull_receives(lane& l);
  bool may_begin(incoming& op) const noexcept;
  bool overlaps_earlier(const incoming& op) const noexcept;
  void begin(incoming& op, const record* r);
  std::uint64_t take_part(lane& l, incoming& op, record* r);
  std::uint64_t take_direct(lane& l, incoming& op, record* r);
  void take(incoming& op, const std::byte* from, std::uint64_t bytes) noexcept;
  void pass(lane& l, record* r, std::uint64_t payload, rg_status status, bool sender_waits) noexcept;
  void end_receive(lane& l, rg_status status);
  void lose(const char* how);
  void distrust(const char* how);
  void report_loss(rg_status status) const;
  bool reads_our_heap() const noexcept { return !gone_ && own_link_.peer.reading.load() != 0; }

  station& home_;
  const std::uint32_t rank_;
  file_descriptor socket_;
  control_area control_;   // the peer's
  mapping memory_;         // the peer's heap
  link_state& own_link_;   // in our control memory, for this peer
  link_state& their_link_; // in the peer's, for us
  std::vector<lane> lanes_;
  bool lost_ = false, gone_ = false, cancelled_ = false;
  const char* how_lost_ = "";
};

} // namespace shm
