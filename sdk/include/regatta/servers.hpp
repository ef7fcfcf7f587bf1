// SPDX-License-Identifier: Apache-2.0
//
// For strategies with parameter servers: how the arena is cut into shards, and how a server sends weights that change
// meanwhile.
#pragma once

#include <regatta/strategy.hpp>

namespace rg {

// Returns whether `rank` is the rank of a server.
inline bool is_server(const rg_cluster& c, std::uint32_t rank) {
  return std::find(c.server_rank, c.server_rank + c.servers, rank) != c.server_rank + c.servers;
}
// For a strategy's talks(): returns whether one of the two ranks is a worker and the other a server.
inline bool worker_and_server(const rg_cluster& c, std::uint32_t a, std::uint32_t b) {
  return (a < c.workers && is_server(c, b)) || (b < c.workers && is_server(c, a));
}

// [main] Cuts the arena into buckets by comm::make_buckets(), and returns them in order. A bucket, which all servers
// share, has `bytes` bytes, or 64 bytes for each server if that is more.
inline std::vector<span_of_arena> buckets_for_servers(comm& c, std::uint64_t bytes) {
  return c.make_buckets(std::max<std::uint64_t>(bytes, 64 * c.servers()));
}

// Cuts every bucket into as many parts as there are servers, as part_of() does: part s is for server s. So each server
// holds nearly the same number of bytes whatever the sizes of the tensors, and every server has work from the first
// bucket on. The same on all ranks.
class shards {
public:
  // `buckets`: of buckets_for_servers(). Does not call own(). Requires at least one server. Throws rg::error
  // (RG_E_CONFIG) if a model without sparse tables has too few weights for the servers.
  shards(const comm& c, std::vector<span_of_arena> buckets)
      : buckets_(std::move(buckets)), servers_(c.servers()), server_(c.server()) {
    // Every server needs a part of the first bucket, since a worker says goodbye there. With sparse tables it says
    // goodbye in a request for rows instead.
    if (!c.tables() && part(0, 0).count == 0)
      throw error(RG_E_CONFIG, "the model has too few weights to be divided among " + std::to_string(servers_) +
                                   " servers: use at most " + std::to_string((c.arena().count + 15) / 16));
  }
  std::size_t buckets() const { return buckets_.size(); }
  span_of_arena bucket(std::size_t b) const { return buckets_[b]; }
  span_of_arena part(std::size_t b, std::uint32_t server) const { return part_of(buckets_[b], server, servers_); }
  // Returns this server's part of bucket b, which may be empty in small buckets. Requires that this rank is a server.
  span_of_arena mine(std::size_t b) const { return part(b, server_); }
  // Returns whether the server has a part of any bucket; with sparse tables it may have none.
  bool has_part(std::uint32_t server) const {
    for (std::size_t b = 0; b < buckets_.size(); ++b)
      if (part(b, server).count) return true;
    return false;
  }
  // Returns the elements of the largest part.
  std::uint64_t largest() const {
    std::uint64_t most = 0;
    for (std::size_t b = 0; b < buckets_.size(); ++b)
      for (std::uint32_t s = 0; s < servers_; ++s) most = std::max(most, part(b, s).count);
    return most;
  }

private:
  std::vector<span_of_arena> buckets_;
  std::uint32_t servers_, server_;
};

// Sends copies of buffers that may change before the message has left. It has a ring of slots for the copies; a slot is
// free again once its message has been sent.
class snapshots {
public:
  // For the strategy's constructor: allocates `slots` slots, at least one, of `largest` fp32 elements each, the most
  // that one message may have.
  snapshots(comm& c, std::size_t slots, std::uint64_t largest) : comm_(&c), sends_(slots) {
    for (std::size_t i = 0; i < slots; ++i) memory_.push_back(c.alloc(largest));
  }
  // Waits for the next slot, copies `source` (RG_F32) into it and begins to send it; ends before the message has been
  // sent, and `source` may then change. Throws rg::error if the copy, or the message that used the slot before, failed.
  task<> send(comm& comm, std::uint32_t peer, rg_buffer source, std::uint32_t lane) {
    const std::size_t slot = next_++ % sends_.size();
    operation& previous = sends_[slot];
    co_await previous;
    const rg_buffer copy = sub(memory_[slot], 0, source.count);
    co_await comm.copy(copy, source);
    sends_[slot] = comm.send(peer, copy, lane);
  }
  // Waits until all messages have been sent. Throws rg::error if one failed.
  task<> all_sent() {
    for (operation& s : sends_) co_await s;
  }
  frame_pool& frames() { return comm_->frames(); }

private:
  comm* comm_;
  std::vector<operation> sends_;
  std::vector<rg_buffer> memory_;
  std::size_t next_ = 0;
};

} // namespace rg
