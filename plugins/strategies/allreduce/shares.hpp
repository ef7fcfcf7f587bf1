// SPDX-License-Identifier: Apache-2.0
//
// A bucket's update, shared out: each worker sums and updates its share and sends the new weights to all. So an n-th of
// the optimiser's work and state is on each, and the bytes are those of an all-reduce (Xu et al., Automatic cross-replica
// sharding of weight update in data-parallel training, 2020). Shares cross once as gradients and once as weights, straight
// to where they belong; a worker adds the others' gradients to its own in the order of the ranks. Or the transport's own
// reduce-scatter and all-gather carry them.
#pragma once

#include <regatta/strategy.hpp>

#include <vector>

class shares {
public:
  // Between `members`, the ranks of all workers, ascending, this worker at place `me`. In the strategy's constructor.
  // `native`: by the transport's own collectives, where it has both. All members must ask for those of a group in the same
  // order; in two groups no gather waits for the next bucket's gradients. `on_device`: the groups of a rank share one queue
  // there, so there is but one, and update() must be called for one bucket after the other.
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
  bool is_native() const { return scatters_.has_value(); }

  // Sums and updates this worker's share of bucket b; with clipping the update waits for commit(), else this hands it out.
  // Receives are posted before anything is sent, so that what comes goes straight into place.
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
  // After commit(): this worker's weights to all, theirs into place.
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
  // This step reads them no more.
  void await_weights(std::size_t b, std::uint32_t lane) {
    for_others([&](std::size_t w, std::uint32_t rank) {
      weights_[b][w] = comm_.recv(rank, comm_.weights(share(b, w)), lane);
    });
  }
  // Bucket b's turn comes when the one before has been asked for.
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
  std::vector<rg::event> scattered_, gathered_;               // by bucket: it was asked for
  std::vector<operations> sums_, weights_, pushes_, answers_; // [bucket][worker]
};
