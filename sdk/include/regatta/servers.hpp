// SPDX-License-Identifier: Apache-2.0
//
// What parameter-server strategies share: how the arena is cut over servers, and what a server sends of it.
#pragma once

#include <regatta/strategy.hpp>

namespace rg {

inline bool is_server(const rg_cluster& c, std::uint32_t rank) {
  return std::find(c.server_rank, c.server_rank + c.servers, rank) != c.server_rank + c.servers;
}
// For talks(): workers with servers, nobody else.
inline bool worker_and_server(const rg_cluster& c, std::uint32_t a, std::uint32_t b) {
  return (a < c.workers && is_server(c, b)) || (b < c.workers && is_server(c, a));
}

// Every bucket is cut into as many equal parts as there are servers, so each server holds the same number of bytes
// whatever the tensors' sizes, and all of them have work from the first bucket on.
class shards {
public:
  // Sets the buckets: `bytes` at most, over all servers.
  shards(comm& c, std::int64_t bytes)
      : buckets_(c.make_buckets(std::max<std::uint64_t>(static_cast<std::uint64_t>(bytes), 64 * c.servers()))),
        servers_(c.servers()), server_(c.cluster().server) {
    // Every server has a part of the first bucket: that is where it hears that a worker says goodbye. With tables it
    // hears it there.
    if (!c.tables() && part(0, 0).count == 0)
      throw error(RG_E_CONFIG, "the model has too few weights to be cut over " + std::to_string(servers_) +
                                   " servers: use at most " + std::to_string((c.arena().count + 15) / 16));
  }
  std::size_t buckets() const { return buckets_.size(); }
  span_of_arena bucket(std::size_t b) const { return buckets_[b]; }
  span_of_arena part(std::size_t b, std::uint32_t server) const { return part_of(buckets_[b], server, servers_); }
  // This server's; may be empty in small buckets.
  span_of_arena mine(std::size_t b) const { return part(b, static_cast<std::uint32_t>(server_)); }
  // Whether it has any; with tables it need not.
  bool has_part(std::uint32_t server) const {
    for (std::size_t b = 0; b < buckets_.size(); ++b)
      if (part(b, server).count) return true;
    return false;
  }
  std::uint64_t largest() const {
    std::uint64_t most = 0;
    for (std::size_t b = 0; b < buckets_.size(); ++b)
      for (std::uint32_t s = 0; s < servers_; ++s) most = std::max(most, part(b, s).count);
    return most;
  }

private:
  std::vector<span_of_arena> buckets_;
  std::uint32_t servers_;
  std::int32_t server_;
};

// Messages to one worker whose contents must not change on their way, while what they were copied from does: a ring of
// copies. A slot is free again when its message has left.
class snapshots {
public:
  snapshots(comm& c, std::size_t slots, std::uint64_t largest) : comm_(&c), sends_(slots) {
    for (std::size_t i = 0; i < slots; ++i) memory_.push_back(c.alloc(largest));
  }
  // Copies `source` and sends it: in order, waiting for a slot first.
  static task<> send(snapshots& self, comm& comm, std::uint32_t peer, rg_buffer source, std::uint32_t lane) {
    const std::size_t slot = self.next_++ % self.sends_.size();
    operation& previous = self.sends_[slot];
    co_await previous;
    const rg_buffer copy = sub(self.memory_[slot], 0, source.count);
    co_await comm.copy(copy, source);
    self.sends_[slot] = comm.send(peer, copy, lane);
  }
  static task<> all_sent(snapshots& self) {
    for (operation& s : self.sends_) co_await s;
  }
  frame_pool& frames() { return comm_->frames(); }

private:
  comm* comm_;
  std::vector<operation> sends_;
  std::vector<rg_buffer> memory_;
  std::size_t next_ = 0;
};

} // namespace rg
