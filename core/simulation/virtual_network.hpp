// SPDX-License-Identifier: Apache-2.0
//
// A network of ranks in one process, under a virtual clock: deterministic, and as strict as the contract of
// rg_transport allows. Every rank has one link. Messages leave it one after the other at `bytes_per_ns`, those on the
// lowest lane first, and arrive `latency_ns` later.
//   eager: a send ends when the last byte has left, whether or not it is received.
//   rendezvous: a message starts when its receive is posted, and the send ends with the receive.
// The bytes are only read at that moment, so a strategy that writes a buffer too early computes a different result.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include <regatta/abi.h>

namespace regatta {

struct network_options {
  bool eager = true;
  bool adds = true;         // the transport adds on receive
  bool collectives = false; // the transport has native collectives
  bool hesitates = false;   // every collective is first refused with RG_AGAIN
  std::uint64_t latency_ns = 1000;
  double bytes_per_ns = 1.0;
  bool exact = false; // a message shorter than its receive is an error
};

class virtual_network {
public:
  virtual_network(std::uint32_t ranks, network_options options);
  ~virtual_network();

  const rg_transport& functions() const;
  void* endpoint(std::uint32_t rank);
  rg_transport_caps caps() const;

  std::uint64_t now() const { return now_; }
  // Returns the time of the next event; UINT64_MAX: there is none.
  std::uint64_t next_event() const { return events_.empty() ? UINT64_MAX : std::get<0>(events_.top()); }
  // Advances time to `t` and executes all events until then.
  void advance(std::uint64_t t);

  struct counts {
    std::uint64_t messages_sent = 0, bytes_sent = 0, messages_received = 0, bytes_received = 0;
  };
  const counts& counted(std::uint32_t r) const { return ranks_[r]->counted; }
  // Returns the ranks that got new completions or a chance to retry since the last call.
  std::vector<std::uint32_t> take_touched() { return std::exchange(touched_, {}); }
  // Returns the number of operations that have not ended, over all ranks.
  std::size_t outstanding() const { return outstanding_; }

private:
  struct payload { // has only a size for ghosts
    std::vector<std::uint8_t> bytes;
    std::uint64_t size = 0;
  };
  static payload read(const rg_transfer& t);
  struct receive {
    rg_transfer transfer;
    payload content;
    bool arrived = false;
  };
  struct message {
    rg_transfer transfer;
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
    std::deque<message> sends;
    std::deque<std::shared_ptr<receive>> receives;
    std::deque<payload> landed; // eager: messages that arrived before their receive was posted
  };
  struct gathering {        // a pending native collective
    std::uint32_t kind = 0; // rg_op_kind
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
  template <std::uint32_t Kind> static rg_status collective(void* self, const rg_collective* c) {
    auto& r = *static_cast<rank*>(self);
    return r.network->collective(r, Kind, *c);
  }
  rg_status collective(rank& r, std::uint32_t kind, const rg_collective& c);
  static void exchange(const gathering& g); // writes every member's result
  void transmit(rank& from, std::uint32_t lane, std::uint64_t bytes, std::function<void()> left);
  void pump(rank& from);
  void meet(key k);
  void arrive(rank& to, const std::shared_ptr<receive>& r, payload content);
  void settle(rank& r);
  void end(rank& r, std::uint64_t cookie, rg_status status, std::uint64_t bytes);

  static const rg_transport* table();

  network_options options_;
  std::uint64_t now_ = 0, order_ = 0;
  std::size_t outstanding_ = 0;
  std::vector<std::unique_ptr<rank>> ranks_;
  std::vector<std::uint32_t> touched_;
  std::map<key, channel> channels_;
  std::vector<std::vector<std::uint32_t>> groups_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> joined_; // (group, rank): collectives begun
  std::map<std::pair<std::uint32_t, std::uint64_t>, gathering> gatherings_; // (group, number)
  std::priority_queue<happening, std::vector<happening>, later> events_;
};

} // namespace regatta
