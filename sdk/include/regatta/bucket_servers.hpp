// SPDX-License-Identifier: Apache-2.0
//
// Base of strategies on data_parallel whose gradients are summed on parameter servers, each bucket as a whole on one of
// them: the one that has the fewest elements so far. regatta/servers.hpp has the other cut, of every bucket among all
// servers.
//
//   struct mine : rg::bucket_servers<mine> {
//     std::uint32_t to_servers(std::uint32_t lane) const;          // [any] the messages' lane of `lane`'s pushes
//     rg::task<> update(rg::bucket b);                             // [loop] on workers: pushes, awaits the answer
//     rg::operation receive(rg::bucket b, std::uint32_t worker);   // [loop] on servers: receives a worker's push
//     rg::task<> answer(rg::bucket b);                             // [loop] on servers: sums the pushes and answers
//   };
// On servers b.gradients is empty. A push is never empty: an empty message in its place is the goodbye of a worker.
#pragma once

#include <regatta/data_parallel.hpp>
#include <regatta/servers.hpp>

namespace rg {

template <class S> class bucket_servers : public data_parallel<S> {
  using base = data_parallel<S>;

public:
  // [main] As data_parallel, with at most `most` lanes. There need not be a server; then no bucket has one.
  bucket_servers(rg::comm& c, std::vector<span_of_arena> cut, std::uint32_t most) : base(c, std::move(cut), most) {
    std::vector<std::uint64_t> load(comm.servers()); // elements of each server
    for (const span_of_arena& b : buckets()) {
      if (load.empty()) return;
      const auto least = std::min_element(load.begin(), load.end());
      server_of_.push_back(static_cast<std::uint32_t>(least - load.begin()));
      *least += b.count;
    }
  }
  // All workers train the same number of steps: a server has ended when a worker says goodbye on each of its lanes.
  task<> finish() {
    for (std::uint32_t s = 0; s < comm.servers(); ++s)
      for (std::uint32_t lane = 0; lane < lanes(); ++lane)
        if (!buckets_of(s, lane).empty())
          co_await comm.send(comm.server_rank(s), comm.gradients({0, 0}), self().to_servers(lane));
  }
  task<> serve() {
    for (std::uint32_t lane = 0; lane < lanes(); ++lane) serving_.spawn(serve_lane(lane));
    co_await serving_.join();
  }

  using base::comm;

protected:
  using base::buckets;
  using base::lanes;
  // Returns the server of bucket `index`, whose rank is comm.server_rank(). Requires a server.
  std::uint32_t server_of(std::size_t index) const { return server_of_[index]; }
  // Returns the buckets of a server on a lane, in ascending order.
  std::vector<std::uint32_t> buckets_of(std::uint32_t server, std::uint32_t lane) const {
    std::vector<std::uint32_t> found;
    for (std::uint32_t b = lane; b < server_of_.size(); b += lanes())
      if (server_of_[b] == server) found.push_back(b);
    return found;
  }
  // Makes `step` the first one that is served: after a checkpoint.
  void serve_from(std::uint64_t step) { first_step_ = step; }

private:
  S& self() { return static_cast<S&>(*this); }
  task<> serve_lane(std::uint32_t lane) {
    const std::vector<std::uint32_t> mine = buckets_of(comm.server(), lane);
    std::vector<operation> pushes(comm.workers());
    for (std::uint64_t step = first_step_; !mine.empty(); ++step)
      for (const std::uint32_t index : mine) {
        const bucket b{step, index, lane, buckets()[index], {}};
        for (std::uint32_t w = 0; w < comm.workers(); ++w) pushes[w] = self().receive(b, w);
        bool goodbye = false;
        for (operation& push : pushes) goodbye = co_await push == 0 || goodbye;
        if (goodbye) co_return;
        co_await self().answer(b);
      }
  }

  std::vector<std::uint32_t> server_of_; // [bucket]
  std::uint64_t first_step_ = 0;
  task_group serving_;
};

} // namespace rg
