// SPDX-License-Identifier: Apache-2.0
//
// Sharded update of a bucket: each worker sums the gradients of its shard, updates it and sends the new weights to all
// workers. Each worker has 1/n of the optimizer's work and state, and sends as many bytes as in an all-reduce (Xu et
// al., Automatic cross-replica sharding of weight update in data-parallel training, 2020). A shard's gradients are sent
// directly to its owner, which adds them to its own in the order of ranks, and its weights directly to all workers.
// With `native`, the transport's reduce-scatter and all-gather do both.
#pragma once

#include <regatta/strategy.hpp>

#include <vector>

// A bucket's tasks run once per step, on all workers. References that are passed must outlive the object.
class shares {
public:
  // Call it in the strategy's constructor. `members` are the ranks of all workers in ascending order, this one at index
  // `me`. `native`: use the transport's reduce-scatter and all-gather if it has both. All members must start a group's
  // collectives in the same order; there are two groups, so that no all-gather waits for the next bucket's gradients.
  // `on_device`: a rank's groups share one queue there, so there is one group only, and update() must be called for one
  // bucket after the other.
  shares(rg::comm& c, const std::vector<rg::span_of_arena>& buckets, const std::vector<std::uint32_t>& members,
         std::size_t me, bool native, bool on_device)
      : comm_(c), buckets_(buckets), members_(members), me_(me), scattered_(buckets.size()), gathered_(buckets.size()) {
    if (native && c.offers(RG_OP_REDUCE_SCATTER) && c.offers(RG_OP_ALL_GATHER)) {
      scatters_ = c.split(members);
      gathers_ = on_device ? scatters_ : c.split(members);
    }
    for (std::size_t b = 0; b < buckets.size(); ++b) c.own_as_worker(share(b, me));
    for (auto* of_bucket : {&sums_, &weights_, &pushes_, &answers_}) {
      of_bucket->resize(buckets.size());
      for (operations& o : *of_bucket) o.resize(members.size());
    }
  }
  // Returns whether the transport's collectives are used.
  bool is_native() const { return scatters_.has_value(); }

  // Sums and updates this worker's shard of bucket b, whose gradients must be ready. Without deferred updates it also
  // exchanges the new weights, so that the whole bucket is new at its end; otherwise hand_out() does that after
  // commit(). Receives are posted before sends, so that messages arrive directly in place. `lane` must be the same on
  // all workers; it is not used if is_native().
  static rg::task<> update(shares& self, std::size_t b, std::uint64_t step, std::uint32_t lane) {
    const rg_buffer mine = self.comm_.gradients(self.share(b, self.me_));
    if (self.is_native()) {
      co_await scatter(self, b);
    } else {
      self.for_others(
          [&](std::size_t w, std::uint32_t rank) { self.sums_[b][w] = self.comm_.recv_add(rank, mine, lane); });
      if (!self.comm_.deferred()) self.await_weights(b, lane);
      self.for_others([&](std::size_t w, std::uint32_t rank) {
        self.pushes_[b][w] = self.comm_.send(rank, self.comm_.gradients(self.share(b, w)), lane);
      });
      for (rg::operation& o : self.sums_[b]) co_await o;
    }
    co_await self.comm_.apply_as_worker(self.share(b, self.me_).first, mine, step);
    if (!self.comm_.deferred()) co_await answer(self, b, lane);
    for (rg::operation& o : self.pushes_[b]) co_await o;
  }
  // With deferred updates, call it after commit(), for all buckets in ascending order: sends this worker's shard of the
  // weights of bucket b to all workers and receives theirs.
  static rg::task<> hand_out(shares& self, std::size_t b, std::uint32_t lane) {
    if (!self.is_native()) self.await_weights(b, lane);
    return answer(self, b, lane);
  }
  rg::frame_pool& frames() { return comm_.frames(); }

private:
  using operations = std::vector<rg::operation>;

  rg::span_of_arena share(std::size_t b, std::size_t worker) const {
    return rg::part_of(buckets_[b], worker, members_.size());
  }
  template <class F> void for_others(F&& f) {
    for (std::size_t w = 0; w < members_.size(); ++w)
      if (w != me_) f(w, members_[w]);
  }
  // Posts receives into the weights, which this step does not read any more.
  void await_weights(std::size_t b, std::uint32_t lane) {
    for_others([&](std::size_t w, std::uint32_t rank) {
      weights_[b][w] = comm_.recv(rank, comm_.weights(share(b, w)), lane);
    });
  }
  // Returns once the collective of bucket b - 1 has been started.
  static rg::task<> turn(shares&, std::vector<rg::event>& asked, std::size_t b) {
    if (b == 0) co_return;
    rg::event& before = asked[b - 1];
    co_await before;
  }
  static rg::task<> scatter(shares& self, std::size_t b) {
    co_await turn(self, self.scattered_, b);
    auto sum = self.comm_.reduce_scatter(*self.scatters_, self.comm_.gradients(self.buckets_[b]));
    self.scattered_[b].set();
    co_await sum;
  }
  static rg::task<> gather(shares& self, std::size_t b) {
    co_await turn(self, self.gathered_, b);
    auto weights = self.comm_.all_gather(*self.gathers_, self.comm_.weights(self.buckets_[b]));
    self.gathered_[b].set();
    co_await weights;
  }
  static rg::task<> answer(shares& self, std::size_t b, std::uint32_t lane) {
    if (self.is_native()) {
      co_await gather(self, b);
      co_return;
    }
    self.for_others([&](std::size_t w, std::uint32_t rank) {
      self.answers_[b][w] = self.comm_.send(rank, self.comm_.weights(self.share(b, self.me_)), lane);
    });
    for (rg::operation& o : self.weights_[b]) co_await o;
    for (rg::operation& o : self.answers_[b]) co_await o;
  }

  rg::comm& comm_;
  const std::vector<rg::span_of_arena>& buckets_;
  const std::vector<std::uint32_t>& members_;
  std::size_t me_;
  std::optional<std::uint32_t> scatters_, gathers_;           // groups
  std::vector<rg::event> scattered_, gathered_;               // by bucket: its collective has been started
  std::vector<operations> sums_, weights_, pushes_, answers_; // [bucket][worker]
};
