// SPDX-License-Identifier: Apache-2.0
//
// A network of ranks in one process, under a virtual clock: deterministic, and as strict as the contract of
// rg_transport allows a transport to be. Every rank has one link: messages leave it one after the other at
// `bytes_per_ns`, and arrive `latency_ns` later.
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
#include <vector>

#include <regatta/abi.h>

namespace regatta::test {

struct network_options {
  bool eager = true;
  bool adds = true;         // the transport adds on receive
  bool collectives = false; // and has a native all-reduce
  std::uint64_t latency_ns = 1000;
  double bytes_per_ns = 1.0;
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
  // Whether this rank's next poll has something to give.
  bool has_ended(std::uint32_t r) const { return !ranks_[r]->ended.empty(); }
  // Operations that were begun and have not ended, over all ranks.
  std::size_t outstanding() const { return outstanding_; }

private:
  struct receive {
    rg_transfer transfer;
    std::vector<std::uint8_t> bytes;
    bool arrived = false;
  };
  struct message {
    rg_transfer transfer;
  };
  struct rank {
    virtual_network* network;
    std::uint32_t number;
    std::uint64_t link_free = 0;
    std::deque<rg_completion> ended;
    std::deque<std::shared_ptr<receive>> posted; // in posting order
    counts counted;
  };
  struct channel { // of (from, to, lane)
    std::deque<message> sends;
    std::deque<std::shared_ptr<receive>> receives;
    std::deque<std::vector<std::uint8_t>> landed; // eager: arrived before their receive was posted
    std::uint64_t last_arrival = 0;
  };
  struct gathering { // one native all-reduce under way
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
  rg_status all_reduce(rank& r, const rg_collective& c);
  std::uint64_t leave(rank& from, std::uint64_t bytes); // when the last byte has left
  void meet(key k);
  void arrive(rank& to, const std::shared_ptr<receive>& r, std::vector<std::uint8_t> bytes);
  void settle(rank& r);
  void end(rank& r, std::uint64_t cookie, rg_status status, std::uint64_t bytes);

  static const rg_transport* table();

  network_options options_;
  std::uint64_t now_ = 0, order_ = 0;
  std::size_t outstanding_ = 0;
  std::vector<std::unique_ptr<rank>> ranks_;
  std::map<key, channel> channels_;
  std::vector<std::vector<std::uint32_t>> groups_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> joined_; // (group, rank): all-reduces begun
  std::map<std::pair<std::uint32_t, std::uint64_t>, gathering> gatherings_; // (group, number)
  std::priority_queue<happening, std::vector<happening>, later> events_;
};

} // namespace regatta::test
