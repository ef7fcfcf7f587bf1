// SPDX-License-Identifier: Apache-2.0
//
// A transport (rg_transport) between ranks in one process, under a virtual clock in ns. It is deterministic. Every rank
// has one outgoing link. Messages leave over it one after the other at `bytes_per_ns`, those on the lowest lane first,
// and arrive `latency_ns` after their last byte has left.
//   eager: a send ends when its last byte has left, whether or not a receive is posted.
//   rendezvous: a message starts to leave only once its receive is posted, and the send ends when it arrives.
// A send's buffer is read at the latest moment that rg_transport allows, when the send ends. A strategy that writes it
// before that moment, or loses a message to a later receive into the same bytes, is named by misuse().
//
// All functions are called on one thread. A native collective takes the time of a ring, but does not use the links; the
// call throws std::logic_error if the n-th collective of a group is not of the same kind on all members.
#pragma once

#include "network_options.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <regatta/abi.h>
#include <regatta/ext/collectives.h>

namespace regatta {

class virtual_network {
public:
  virtual_network(std::uint32_t ranks, network_options options);

  // Returns the functions of the transport: send, recv, poll and now; with `collectives` also extension. The others are
  // null. poll() never waits: it ignores its times and returns the completions up to now(). The table lives as long as
  // this object.
  const rg_transport& functions() const { return functions_; }
  // Returns the instance of a rank, to be passed as `self` to functions(). It lives as long as this object.
  void* endpoint(std::uint32_t rank);
  rg_transport_caps caps() const;

  std::uint64_t now() const { return now_; }
  // Returns the absolute time of the next event; UINT64_MAX: there is none.
  std::uint64_t next_event() const { return events_.empty() ? UINT64_MAX : std::get<0>(events_.top()); }
  // Advances time to `t`, and executes all events up to and including `t`.
  void advance(std::uint64_t t);

  // Messages of a rank: those that have begun to leave, and those that have arrived. Native collectives do not count.
  struct counts {
    std::uint64_t messages_sent = 0, bytes_sent = 0, messages_received = 0, bytes_received = 0;
    // Messages and bytes that have been queued for the link or have left, by peer and lane.
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<std::uint64_t, std::uint64_t>> sent_to;
  };
  const counts& counted(std::uint32_t r) const { return ranks_[r]->counted; }
  // Returns the ranks that since the last call got a completion, or may retry after RG_AGAIN. A rank may occur twice. A
  // rank that still has completions to poll is not named for further ones, so each must poll until there are no more.
  std::vector<std::uint32_t> take_touched() { return std::exchange(touched_, {}); }
  // Returns the number of operations, over all ranks, that have not ended. An operation has ended once its completion
  // can be polled.
  std::size_t outstanding() const { return outstanding_; }
  // Returns by rank what each operation that has no counterpart waits for: "to receive 160 bytes from rank 1 on lane
  // 0".
  std::multimap<std::uint32_t, std::string> waits() const;
  // Returns the first misuse of the network that changes a result, with its ranks and lane: bytes of a send that
  // changed before it ended, or a message that another outstanding receive overwrites. Empty: there was none.
  const std::string& misuse() const { return misuse_; }

private:
  struct payload { // has only a size for ghosts
    std::vector<std::uint8_t> bytes;
    std::uint64_t size = 0;
  };
  struct message { // a send, and its bytes when it began
    rg_transfer transfer;
    payload posted;
  };
  static rg_transport make_functions(bool collectives);
  static payload read(const rg_transfer& t);
  struct receive {
    rg_transfer transfer;
    payload content;
    bool arrived = false;
    std::vector<std::shared_ptr<receive>> over; // outstanding receives into some of the same bytes when it was posted
  };
  struct rank {
    virtual_network* network;
    std::uint32_t number;
    bool sending = false;
    bool refused = false; // whether its last collective was refused
    // Messages that wait for the link, by lane and order of submission: bytes, and the function to call when the last
    // byte has left.
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::pair<std::uint64_t, std::function<void()>>> waiting;
    std::deque<rg_completion> ended;
    std::deque<std::shared_ptr<receive>> posted; // in posting order
    counts counted;
  };
  struct channel { // of (from, to, lane)
    std::deque<std::shared_ptr<message>> sends;
    std::deque<std::shared_ptr<receive>> receives;
    std::deque<payload> landed; // eager: messages that arrived before their receive was posted
  };
  struct pending_collective { // a pending native collective
    std::vector<std::pair<std::uint32_t, rg_collective>> joined;
  };

  using key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
  // An event: time, order of scheduling (breaks ties), function.
  using happening = std::tuple<std::uint64_t, std::uint64_t, std::function<void()>>;
  struct later {
    bool operator()(const happening& a, const happening& b) const {
      return std::tie(std::get<0>(a), std::get<1>(a)) > std::tie(std::get<0>(b), std::get<1>(b));
    }
  };

  void at(std::uint64_t t, std::function<void()> f) { events_.push({t, order_++, std::move(f)}); }
  rg_status send(rank& from, const rg_transfer& t);
  rg_status recv(rank& to, const rg_transfer& t);
  static rg_status begin(void* self, const rg_collective* c) {
    auto& r = *static_cast<rank*>(self);
    return r.network->collective(r, *c);
  }
  rg_status collective(rank& r, const rg_collective& c);
  static void write_results(const pending_collective& g); // writes every member's result
  // Queues a message for the link of `from`; calls `left` when its last byte has left. pump() begins the next one.
  void transmit(rank& from, const rg_transfer& t, std::function<void()> left);
  void pump(rank& from);
  // Gives the messages of a channel to its receives, both in order.
  void match(key k);
  // A message has arrived for a receive. complete_arrived() writes it to its buffer, once the earlier receives into the
  // same bytes have ended.
  void arrive(rank& to, const std::shared_ptr<receive>& r, payload content);
  void complete_arrived(rank& r);
  // Returns the bytes of a send that ends now. Reports a misuse if they are not those that it began with.
  payload read_at_end(const rank& from, const message& m);
  void require_kept(const rank& r, const receive& second);
  void report(std::string misuse) {
    if (misuse_.empty()) misuse_ = std::move(misuse);
  }
  std::uint64_t latency(std::uint32_t from, std::uint32_t to) const {
    return options_.latency_ns * (options_.uneven ? 1 + (std::min(from, to) * 3 + std::max(from, to)) % 5 : 1);
  }
  // Makes the completion of an operation available to poll().
  void end(rank& r, std::uint64_t cookie, rg_status status, std::uint64_t bytes);

  network_options options_;
  rg_transport functions_;
  std::uint64_t now_ = 0, order_ = 0;
  std::size_t outstanding_ = 0;
  std::string misuse_;
  std::vector<std::unique_ptr<rank>> ranks_;
  std::vector<std::uint32_t> touched_;
  std::map<key, channel> channels_;
  std::vector<std::vector<std::uint32_t>> groups_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> joined_; // (group, rank): collectives begun
  std::map<std::pair<std::uint32_t, std::uint64_t>, pending_collective> collectives_; // (group, number)
  std::priority_queue<happening, std::vector<happening>, later> events_;
};

} // namespace regatta
