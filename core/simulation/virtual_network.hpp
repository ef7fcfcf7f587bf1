// SPDX-License-Identifier: Apache-2.0
//
// A network of ranks in one process, under a virtual clock: deterministic, and as strict as the contract of
// rg_transport allows a transport to be. Every rank has one link: messages leave it one after the other at
// `bytes_per_ns`, of those that wait the one on the lowest lane first, and arrive `latency_ns` later.
//   eager: a send ends when the last byte has left, whether or not it is received.
//   rendezvous: a message starts when its receive is posted, and the send ends with the receive.
// The bytes are read only at that moment, so a strategy that touches a buffer too early computes something else.
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
  bool collectives = false; // and has native collectives
  bool hesitates = false;   // every collective is first refused with "again"
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
  // When something happens next; UINT64_MAX: never.
  std::uint64_t next_event() const { return events_.empty() ? UINT64_MAX : std::get<0>(events_.top()); }
  // Lets time pass to `t`, and what was to happen until then happen.
  void advance(std::uint64_t t);

  struct counts {
    std::uint64_t messages_sent = 0, bytes_sent = 0, messages_received = 0, bytes_received = 0;
  };
  const counts& counted(std::uint32_t r) const { return ranks_[r]->counted; }
  // Ranks whose next poll has something to give, that had nothing when this was called last.
  std::vector<std::uint32_t> take_touched() { return std::exchange(touched_, {}); }
  // Operations that were begun and have not ended, over all ranks.
  std::size_t outstanding() const { return outstanding_; }

private:
  struct payload { // of a ghost only the size
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
    bool refused = false; // its last call of a collective
    // What waits for the link, by lane and order of coming: its bytes, and what happens when the last has left.
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::pair<std::uint64_t, std::function<void()>>> waiting;
    std::deque<rg_completion> ended;
    std::deque<std::shared_ptr<receive>> posted; // in posting order
    counts counted;
  };
  struct channel { // of (from, to, lane)
    std::deque<message> sends;
    std::deque<std::shared_ptr<receive>> receives;
    std::deque<payload> landed; // eager: arrived before their receive was posted
  };
  struct gathering {        // one native collective under way
    std::uint32_t kind = 0; // rg_op_kind
    std::vector<std::pair<std::uint32_t, rg_collective>> joined;
  };

  using key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
  // Time, order of scheduling (ties are broken by it), what happens.
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
  static void exchange(const gathering& g); // gives every member what it is to have
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
