// SPDX-License-Identifier: Apache-2.0
//
// Messages to and from one peer.
//
// A message of up to `eager` bytes is copied into the ring, in parts, and its send completes once it is there and the
// lane's earlier sends have completed. For a longer message in the heap, the ring carries only its offset: once its
// receive is posted, the receiver copies or adds it directly from the sender's memory into its own, in chunks, and then
// passes the record, which completes the send. A longer message outside the heap goes through the ring in parts, too. A
// message that is too long for its receive, or is to be added and is no whole number of floats, is skipped, and its
// receive ends with RG_E_OPERATION. So does its send, by the record's status, unless the message was eager: then its
// send has completed before.
//
// A peer is lost when it has closed, cancelled this rank, died, or broken the protocol. Messages that it sent before
// can still be received, because its memory stays mapped; everything else ends with RG_E_PEER. If it cancelled this
// rank, messages in its heap are lost too; if it broke the protocol, all messages are.
#pragma once

#include "control.hpp"
#include "fifo.hpp"
#include "heap.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include <sys/socket.h>

namespace shm {

class peer;

// The message by which the lowest rank of a group tells a member where the group's state is (collectives.hpp).
struct group_notice {
  std::uint64_t offset;               // in the heap of the lowest rank
  std::uint64_t members, fingerprint; // their number and group_fingerprint(): detect members of different groups
};

// The bytes of a unit of work. An urgent lane waits for about one unit, but for a longer copy in one case: the result of
// a collective whose target is outside the heap is copied from scratch as a whole.
constexpr std::uint64_t unit_bytes = 256 << 10;

// State that all parts of a transport instance share; it outlives them. [loop], and [main] while no poll() runs.
struct instance_state {
  instance_state(const rg_host* host_, std::uint64_t heap_bytes) : host(host_), memory(heap_bytes) {}

  // Queues a completion for poll().
  void complete(std::uint64_t cookie, rg_status status, std::uint64_t bytes = 0) {
    completions.push_back({.cookie = cookie, .status = status, .bytes = bytes});
  }
  // Tells the engine (rg_host::fail) why an operation failed, because completions carry no text. Does not throw.
  void report(rg_status status, const std::string& text) const { host->fail(host->context, status, text.c_str()); }
  // Returns the peer of this rank, or null if it is not connected.
  peer* find(std::uint32_t r) const noexcept { return r < peers.size() ? peers[r].get() : nullptr; }

  const rg_host* host;
  heap memory;
  control_area control;
  std::uint32_t rank = 0, size = 0, lanes = 0; // this rank; ranks of the run; lanes to each peer
  std::uint64_t eager = 0;                     // bytes: longer messages are not copied into the ring at once
  std::vector<std::unique_ptr<peer>> peers;    // by rank; null: not connected
  fifo<rg_completion> completions;
  rg_counters counters{};
  std::uint64_t eager_messages = 0, direct_messages = 0; // sent; direct: the receiver reads them in this rank's heap
  std::uint64_t exposures = 0;                           // made so far (one_sided.hpp)
  std::uint64_t receives_posted = 0, receives_ended = 0; // over all peers and lanes
};

class peer {
public:
  // [main] `socket`, `control` and `memory` (its heap) are the peer's, from the handshake. `home` must have its own
  // rank, lanes and control memory by now.
  peer(instance_state& home, std::uint32_t rank, file_descriptor socket, control_area control, mapping memory);

  // [loop] Post a send from, or a receive into, the `bytes` bytes at t.address, which must stay valid until the
  // completion. send() already puts the message into the ring if there is room; receive() only remembers it for
  // progress(). After cancel() both throw RG_E_CANCELLED. If the peer is lost, send() throws RG_E_PEER; receive() does
  // not, because messages sent before may still be received. Require a valid t.lane.
  void send(const rg_transfer& t, std::uint64_t bytes);
  void receive(const rg_transfer& t, std::uint64_t bytes);
  // [loop] Makes progress on a lane, and queues completions: fills the free room of its ring, and receives up to about
  // one unit of work. Returns false if nothing could be done.
  bool progress(std::uint32_t lane);
  // [loop] Detect a lost peer, after which is_lost() holds and progress() ends operations. look() reads in shared
  // memory whether the peer has left or cancelled this rank. look_for_death() sees from `events`, the revents of a
  // poll() of the socket with POLLRDHUP, whether its process or instance has ended.
  void look();
  void look_for_death(short events);
  // [main] [loop] Reads what has arrived on the socket, which carries two kinds of packets: those of one byte only woke
  // this rank, notices are kept for take_notice(). Returns false if the peer has closed the socket, or
  // reading fails.
  bool read_socket();
  // [main] Returns the oldest notice that was read; std::nullopt if there is none.
  std::optional<group_notice> take_notice();
  // [loop] Tells the peer on which lanes a message should wake this rank: those with posted receives. Call it before
  // lying down (wake.hpp).
  void announce_sleep() noexcept;
  // [loop] Ends all messages with the peer with RG_E_CANCELLED: receives at once, sends in this call or in a later
  // progress(), once the peer does not read this rank's heap any more. one_sided::progress() ends puts and gets; the
  // caller ends the peer's groups.
  void cancel();
  // [loop] Completes a send with RG_E_CANCELLED if nothing of its message is in the ring, a receive if progress() has
  // not begun to take its message; else changes nothing. Returns whether an operation with this cookie was posted.
  bool cancel_operation(std::uint64_t cookie);
  // [main] Tells the peer that this rank closes, in both directions. The peer then counts this rank as lost: it can
  // still receive messages sent before, but its sends and all other receives end with RG_E_PEER. Does nothing after
  // cancel() or distrust().
  void leave() noexcept;
  // [main] [loop] Wakes the peer if it sleeps; call it after publishing the news.
  void wake() noexcept {
    if (control_.header().sleep.wake()) ::send(socket_.get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  // [loop] Calls `access`, which reads or writes at most unit_bytes bytes of the peer's heap, unless the peer has
  // cancelled this rank: is_lost() then holds. Returns whether it called it.
  template <class F> bool access_heap(F&& access) {
    their_link_.peer.accessing.store(1);
    const bool may_access = their_link_.owner.closed.load() != closing::cancelled;
    if (may_access) access();
    their_link_.peer.accessing.store(0);
    if (their_link_.owner.closed.load() == closing::cancelled) wake(); // the owner waits for the access to end
    if (!may_access) lose("cancelled its operations with this rank");
    return may_access;
  }
  // [loop] The peer broke the protocol: it is lost, all it sends is ignored from now on, and it is barred from this
  // rank's heap. `how`, a literal, completes the sentence "rank 3 ...".
  void distrust(const char* how);
  // [loop] Tells the engine how the peer was lost, as the reason of `status`.
  void report_loss(rg_status status) const;

  std::uint32_t rank() const noexcept { return rank_; }
  bool is_lost() const noexcept { return lost_; }           // also after cancel()
  bool is_cancelled() const noexcept { return cancelled_; } // by cancel()
  bool is_distrusted() const noexcept { return distrusted_; }
  // Says how the peer was lost: "rank 3 died". Requires is_lost().
  std::string loss() const { return "rank " + std::to_string(rank_) + " " + how_lost_; }
  bool is_gone() const noexcept { return gone_; } // its process or instance has ended: it touches no memory
  int socket() const noexcept { return socket_.get(); }
  const mapping& memory() const noexcept { return memory_; } // the peer's heap
  const control_area& control() const noexcept { return control_; }

private:
  struct outgoing {
    const std::byte* address;
    std::uint64_t bytes, cookie;
    std::uint64_t moved; // bytes in the ring so far
    std::uint64_t end;   // ring position behind its last record
    const record* last; // the record that carries the outcome; null before it is written, and once the outcome was read
    rg_status status;   // the outcome
    bool is_eager;
  };
  struct incoming {
    std::byte* address;
    std::uint64_t capacity, cookie;
    std::uint64_t number;   // in the order of posting, over all peers and lanes
    std::uint64_t total;    // bytes of the message; valid once begun
    std::uint64_t moved;    // bytes of the message that have been processed
    std::uint64_t asked_at; // receives_ended when may_begin() last returned false
    rg_status status;
    bool adds, begun, is_free; // is_free: may_begin() has returned true
  };
  struct lane {
    ring_producer out;
    fifo<outgoing> sends;
    std::size_t in_ring = 0; // sends that are wholly in the ring, from the first on
    ring_consumer in;
    fifo<incoming> receives;
  };

  // Writes records of sends, in order, while the ring has room, about unit_bytes at most, and completes the sends that
  // have ended. Returns false if nothing could be done.
  bool push_sends(lane& l);
  // Write the record of a message in the heap, of kind direct; or the next one of kind part. Return the bytes that were
  // written, record included; 0 if the ring has no room now.
  std::uint64_t write_direct(lane& l, outgoing& op);
  std::uint64_t write_part(lane& l, outgoing& op);
  // Returns a record of the lane's ring with room for `payload` bytes, for publish(); null if there is no room, even by
  // the consumer's present tail: the peer then wakes this rank once it has made room.
  record* reserve(lane& l, std::uint64_t payload) noexcept;
  // Reads the consumer's tail, and the outcomes of sends from records that may now be overwritten.
  static void look_for_room(lane& l) noexcept;
  // Publishes a reserved record, and wakes the peer if it waits for one.
  void publish(lane& l, record* r, std::uint64_t payload) noexcept;
  // Wakes the peer if it sleeps and waits for a record of this lane.
  void wake_for(lane& l) noexcept;
  // Completes the sends that have ended. Returns whether there was any.
  bool retire_sends(lane& l);
  // Completes the lane's first send.
  void end_send(lane& l, rg_status status);

  // Consumes records for the lane's receives, in order, about unit_bytes at most. Returns false if nothing could be
  // done.
  bool pull_receives(lane& l);
  // Returns whether no earlier receive, of any peer and lane, that overlaps this one is outstanding.
  bool may_begin(incoming& op) const noexcept;
  bool overlaps_earlier(const incoming& op) const noexcept;
  // Begins the message of record r, its first one; sets op.status to RG_E_OPERATION if it does not fit the receive.
  void begin(incoming& op, const record* r);
  // Consume a record of kind part; or up to unit_bytes bytes of the message of a record of kind direct. Return the
  // bytes that were processed, record included; 0 if the receive has ended because the peer is lost.
  std::uint64_t take_part(lane& l, incoming& op, record* r);
  std::uint64_t take_direct(lane& l, incoming& op, record* r);
  // Copies or adds the message's next bytes to the receive's buffer.
  void take(incoming& op, const std::byte* from, std::uint64_t bytes) noexcept;
  // Passes the record r, which must not be read afterwards, and wakes the peer if it waits for room. `payload` is r's
  // size in bytes. If `sender_waits`, stores `status` in the record and wakes the peer for it.
  void pass(lane& l, record* r, std::uint64_t payload, rg_status status, bool sender_waits) noexcept;
  // Completes the lane's first receive.
  void end_receive(lane& l, rg_status status);
  // Marks the peer as lost; `how`, a literal, completes the sentence "rank 3 ...".
  void lose(const char* how);
  bool accesses_our_heap() const noexcept { return !gone_ && own_link_.peer.accessing.load() != 0; }

  instance_state& home_;
  const std::uint32_t rank_;
  file_descriptor socket_;
  control_area control_;   // the peer's
  mapping memory_;         // the peer's heap
  link_state& own_link_;   // in this rank's control memory, for the peer
  link_state& their_link_; // in the peer's control memory, for this rank
  std::vector<lane> lanes_;
  std::deque<group_notice> notices_;
  bool lost_ = false, gone_ = false, cancelled_ = false;
  bool distrusted_ = false; // it broke the protocol: nothing more is read from it
  const char* how_lost_ = "";
};

} // namespace shm
