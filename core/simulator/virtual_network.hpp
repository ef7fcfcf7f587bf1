// SPDX-License-Identifier: Apache-2.0
//
// A transport (rg_transport) between ranks in one process, under a virtual clock in ns. It is deterministic. Messages
// take the time of the links that they pass (links.hpp); without options.links every rank has one outgoing link, over
// which messages leave one after the other at `bytes_per_ns`, those on the lowest lane first, and arrive `latency_ns`
// after their last byte has left.
//   eager: a send ends when its last byte has left, whether or not a receive is posted.
//   rendezvous: a message starts to leave only once its receive is posted, and the send ends when it arrives.
// A send's buffer is read at the latest moment that rg_transport allows, when the send ends. A strategy that writes it
// before that moment, or loses a message to a later receive into the same bytes, is named by misuse().
//
// All functions are called on one thread. Nothing is allocated for a message once the largest number of simultaneous
// ones has been reached, except for bytes (not with ghosts). A native collective takes the time of a ring, but does not
// use the links; the call throws std::logic_error if the n-th collective of a group is not of the same kind on all
// members.
#pragma once

#include "links.hpp"
#include "native_collectives.hpp"
#include "network_options.hpp"
#include "posted_receives.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <regatta/abi.h>

namespace regatta {

class folded_ranks;
class goal_recorder;
class shared_cores;

class virtual_network final : message_sink {
public:
  // `link_of`: the link of each rank in options.links; empty if there are none.
  virtual_network(std::uint32_t ranks, network_options options, std::vector<std::uint32_t> link_of = {});
  // Delivers the messages of ranks that are not simulated, as copies of those of the ones that are. Borrows `folded`.
  // Call it before any message.
  void fold(folded_ranks& folded) { folded_ = &folded; }
  // Reports sends, receives and their ends to `to`, which is borrowed. Call it before any message.
  void record(goal_recorder& to) { recorder_ = &to; }
  // Lets the work of ranks on messages wait for `cores`, which is borrowed, and tells it how long they work. Call it
  // before any message.
  void share(shared_cores& cores) { cores_ = &cores; }

  // Returns the functions of the transport: send, recv, poll and now; with `collectives` also extension. The others are
  // null. poll() never waits: it ignores its times and returns the completions up to now(). The table lives as long as
  // this object.
  const rg_transport& functions() const { return functions_; }
  // Returns the instance of a rank, to be passed as `self` to functions(). It lives as long as this object.
  void* endpoint(std::uint32_t rank);
  rg_transport_caps caps() const;

  std::uint64_t now() const { return events_.now(); }
  // Returns the absolute time of the next event; UINT64_MAX: there is none.
  std::uint64_t next_event() const { return events_.next(); }
  // Advances time to `t`, and executes all events up to and including `t`.
  void advance(std::uint64_t t);
  // Begins what waits for the end of an instant (links.hpp); returns whether there was anything. Call it before time
  // advances, when all ranks have reacted to everything, until it returns false.
  bool end_instant() { return links_.end_instant(); }

  // Messages of a rank: those that have been queued for a link or have left, and those that have arrived and met their
  // receive. A native collective adds the bytes that a ring sends and receives, and no messages.
  struct counts {
    std::uint64_t messages_sent = 0, bytes_sent = 0, messages_received = 0, bytes_received = 0;
    std::uint64_t collective_bytes = 0; // those of bytes_sent that native collectives sent
    // Messages and bytes that were sent, by peer and lane.
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<std::uint64_t, std::uint64_t>> sent_to;
  };
  // Returns them by rank.
  std::vector<counts> counted() const;
  // Appends the ranks that since the last call got a completion, or may retry after RG_AGAIN. A rank may occur twice. A
  // rank that still has completions to poll is not named for further ones, so each must poll until there are no more.
  void take_touched(std::vector<std::uint32_t>& out);
  // Returns the number of operations, over all ranks, that have not ended. An operation has ended once its completion
  // can be polled.
  std::size_t outstanding() const { return outstanding_; }
  // Returns the number of messages that have arrived and have no receive.
  std::size_t unreceived() const { return unreceived_; }
  // Returns by rank what each operation that has no counterpart waits for: "to receive 160 bytes from rank 1 on lane
  // 0".
  std::multimap<std::uint32_t, std::string> waits() const;
  // Returns the first misuse of the network that changes a result, with its ranks and lane: bytes of a send that
  // changed before it ended, or a message that another outstanding receive overwrites. Empty: there was none.
  const std::string& misuse() const { return misuse_; }

private:
  struct rank {
    virtual_network* network;
    std::uint32_t number;
    bool refused = false;             // whether its last collective was refused
    std::vector<rg_completion> ended; // from `polled` on
    std::size_t polled = 0;
    posted_receives posted;
    std::uint64_t received = 0, bytes_received = 0;
    std::uint64_t collective_bytes = 0; // of native ones, sent and received
  };
  struct alignas(64) channel { // of (from, to, lane); one cache line
    std::uint32_t from, to, lane;
    slab_queue sends;    // rendezvous: messages without a receive
    slab_queue landed;   // eager: messages that arrived before their receive was posted
    slab_queue receives; // without a message
    std::uint64_t messages = 0, bytes = 0;
  };

  static rg_transport make_functions(bool collectives);
  static rg_status begin_collective(void* self, const rg_collective* c);
  rg_status send(const rank& from, const rg_transfer& t);
  rg_status recv(rank& to, const rg_transfer& t);
  rg_status collective(rank& r, const rg_collective& c);
  std::uint32_t channel_of(std::uint32_t from, std::uint32_t to, std::uint32_t lane);
  void grow_index();
  void transmit(std::uint32_t m);
  void match(std::uint32_t channel);
  void left(std::uint32_t m) override;
  void arrived(std::uint32_t m) override;
  void delivered(std::uint32_t m) override;
  bool adds(const network_message& m) const override;
  std::uint64_t works(std::uint32_t rank, bool receives, std::uint64_t earliest, std::uint64_t ns) override;
  void arrive(std::uint32_t r, std::uint32_t m); // the receive's message
  void complete(std::uint32_t r);
  // Reads a send's bytes again, and reports a misuse if they changed.
  void read_at_end(network_message& m);
  void require_kept(const receive& second);
  void report(std::string misuse) {
    if (misuse_.empty()) misuse_ = std::move(misuse);
  }
  // Makes the completion of an operation available to poll().
  void end_collective(std::uint32_t number);
  void end(std::uint32_t rank, std::uint64_t cookie, rg_status status, std::uint64_t bytes);

  network_options options_;
  rg_transport functions_;
  event_queue events_;
  slab<network_message> messages_;
  slab<receive> receives_;
  regatta::links links_;
  std::size_t outstanding_ = 0, unreceived_ = 0;
  std::uint64_t posted_ = 0; // receives so far
  std::string misuse_;
  std::vector<std::unique_ptr<rank>> ranks_;
  std::vector<std::uint32_t> touched_;
  std::vector<channel> channels_;
  std::vector<std::uint32_t> index_; // hash table of numbers of channels, `nothing` where there is none
  // network_options::one_queue: by sender and receiver, the channels of the sends in their order
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<std::uint32_t>> queues_;
  std::vector<std::uint32_t> ready_, freed_;                    // of arrive()
  std::vector<std::pair<std::uint32_t, std::uint32_t>> copies_; // of arrived()
  native_collectives collectives_;
  std::deque<std::pair<std::uint32_t, std::uint64_t>> late_; // ranks whose part of a collective ends late, and cookies
  folded_ranks* folded_ = nullptr;
  goal_recorder* recorder_ = nullptr;
  shared_cores* cores_ = nullptr;
};

} // namespace regatta
