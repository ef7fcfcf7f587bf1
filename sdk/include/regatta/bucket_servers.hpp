// SPDX-License-Identifier: Apache-2.0
//
// Base of strategies on data_parallel whose gradients are summed on parameter servers, each bucket as a whole on one of
// them: the one that has the fewest elements so far. regatta/servers.hpp has the other cut, of every bucket among all
// servers.
//
//   struct mine : rg::bucket_servers<mine> {
//     std::uint32_t to_servers(std::uint32_t lane) const;          // [any] the messages' lane for pushes of the
//                                                                  // buckets with rg::bucket::lane == lane
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
  // [main] `cut`: the buckets, which the strategy has passed to comm::set_buckets(); they use at most `most` lanes. The
  // strategy calls comm::own() itself. Without servers, server_of() must not be called.
  bucket_servers(rg::comm& c, std::vector<span_of_arena> cut, std::uint32_t most) : base(c, std::move(cut), most) {
    std::vector<std::uint64_t> load(comm.servers()); // elements of each server
    for (const span_of_arena& b : buckets()) {
      if (load.empty()) return;
      const auto least = std::min_element(load.begin(), load.end());
      server_of_.push_back(static_cast<std::uint32_t>(least - load.begin()));
      *least += b.count;
    }
  }
  // On workers: sends the goodbye on each lane of each server that has buckets there.
  task<> finish() {
    for (std::uint32_t s = 0; s < comm.servers(); ++s)
      for (std::uint32_t lane = 0; lane < lanes(); ++lane)
        if (!buckets_of(s, lane).empty())
          co_await comm.send(comm.server_rank(s), comm.gradients({0, 0}), self().to_servers(lane));
  }
  // On servers: receives and answers the pushes of each lane, until a worker says goodbye on it. All workers train the
  // same number of steps, so one goodbye ends a lane for all of them.
  task<> serve() {
    for (std::uint32_t lane = 0; lane < lanes(); ++lane) serving_.spawn(serve_lane(lane));
    co_await serving_.join();
  }

  using base::comm;

protected:
  using base::buckets;
  using base::lanes;
  // Returns the number of the server that has bucket `index`; its rank is comm.server_rank(number). Requires that the
  // run has servers.
  std::uint32_t server_of(std::size_t index) const { return server_of_[index]; }
  // Returns the indices of the buckets of a server (by number) on a lane, in ascending order.
  std::vector<std::uint32_t> buckets_of(std::uint32_t server, std::uint32_t lane) const {
    std::vector<std::uint32_t> found;
    for (std::uint32_t b = lane; b < server_of_.size(); b += lanes())
      if (server_of_[b] == server) found.push_back(b);
    return found;
  }
  // Makes `step` the first step that serve() expects, for a run that resumes from a checkpoint. Call it before serve().
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
