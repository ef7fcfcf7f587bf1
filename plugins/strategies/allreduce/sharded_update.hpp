// SPDX-License-Identifier: Apache-2.0
//
// Sharded update of a bucket: each worker sums the gradients of its shard, updates it and sends the new weights to all
// workers. Each worker has 1/n of the optimizer's work and state, and sends as many bytes as in an all-reduce (Xu et
// al., Automatic cross-replica sharding of weight update in data-parallel training, 2020).
//
// In host memory, a shard's gradients are sent directly to its owner, which adds them to its own in the order of ranks,
// and its weights directly to all workers: a worker waits only for the workers whose shards it lacks, not for a group.
// On a device, the transport's reduce-scatter and all-gather do both, if it has them.
#pragma once

#include <regatta/strategy.hpp>

#include <vector>

// A bucket's tasks run once per step, on all workers. The buckets that are passed must outlive the object, and the
// object its tasks.
class sharded_update {
public:
  // Returns whether algorithm = "auto" should use a sharded update: weights are in host memory, where bandwidth bounds
  // updates; a shard of the first bucket has at least 256 KiB, so that its update takes longer than the latency of the
  // messages; and the constructor accepts the model.
  static bool pays(rg::comm& c, const std::vector<rg::span_of_arena>& buckets) {
    constexpr std::uint64_t large = 256 << 10; // bytes
    return !buckets.empty() && buckets[0].count * sizeof(float) / c.workers() >= large && on_host(c) && works(c);
  }
  // Call it in the strategy's constructor. `members` are the ranks of all workers. The wire type must be fp32, because
  // weights must not be rounded. Throws rg::error (RG_E_CONFIG) for a model with sparse tables and deferred updates.
  sharded_update(rg::comm& c, const std::vector<rg::span_of_arena>& buckets, std::span<const std::uint32_t> members)
      : comm_(c), buckets_(buckets) {
    if (!works(c))
      throw rg::error(RG_E_CONFIG, "algorithm = \"sharded\": expected a model without sparse tables beside "
                                   "optimizer.clip_norm or train.precision = \"fp16\", got one with them: use "
                                   "\"ring\" or \"auto\"");
    if (!on_host(c) && c.offers(RG_OP_REDUCE_SCATTER) && c.offers(RG_OP_ALL_GATHER)) group_ = c.split(members);
    for (std::size_t b = 0; b < buckets.size(); ++b) c.own(shard(b, c.rank()), rg::role::worker);
    for (auto* of_bucket : {&sums_, &weights_, &pushes_, &answers_}) {
      of_bucket->resize(buckets.size());
      for (operations& o : *of_bucket) o.resize(members.size());
    }
  }
  // Returns whether the transport's collectives are used. All members must start them in the same order: update() and
  // exchange_weights() must then be called for one bucket after the other.
  bool is_native() const { return group_.has_value(); }

  // Sums and updates this worker's shard of bucket b, whose gradients must be ready. Without deferred updates it also
  // exchanges the new weights, so that the whole bucket is new at its end; otherwise exchange_weights() does that after
  // commit(). Receives are posted before sends, so that messages arrive directly in place. `lane` must be the same on
  // all workers and carry no other bucket until the end; it is not used if is_native().
  rg::task<> update(std::size_t b, std::uint64_t step, std::uint32_t lane) {
    const rg_buffer mine = comm_.gradients(shard(b, comm_.rank()));
    if (is_native()) {
      co_await comm_.reduce_scatter(*group_, comm_.gradients(buckets_[b]));
    } else {
      for (std::uint32_t w = 0; w < comm_.workers(); ++w) // in the order in which they are added
        if (w != comm_.rank()) sums_[b][w] = comm_.recv_add(w, mine, lane);
      if (!comm_.deferred()) post_weights(b, lane);
      for_others([&](std::uint32_t w) { pushes_[b][w] = comm_.send(w, comm_.gradients(shard(b, w)), lane); });
      for (rg::operation& o : sums_[b]) co_await o;
    }
    co_await comm_.apply(shard(b, comm_.rank()).first, mine, step, rg::role::worker);
    if (!comm_.deferred()) co_await send_weights(b, lane);
    for (rg::operation& o : pushes_[b]) co_await o;
  }
  // With deferred updates, call it after commit(), for all buckets in ascending order, and await each before the next
  // call: sends this worker's shard of the weights of bucket b to all workers and receives theirs.
  rg::task<> exchange_weights(std::size_t b, std::uint32_t lane) {
    if (!is_native()) post_weights(b, lane);
    return send_weights(b, lane);
  }
  rg::frame_pool& frames() { return comm_.frames(); } // memory of this object's tasks

private:
  using operations = std::vector<rg::operation>;

  // Weights are in host memory, or ghosts that stand for it.
  static bool on_host(const rg::comm& c) {
    return (c.host()->flags & RG_HOST_GHOSTS) || c.pointer<float>(c.weights(c.whole()));
  }
  // A worker has the norm of its shards only, but updates all rows of sparse tables: the sum of the workers' norms
  // would count rows once for each worker.
  static bool works(const rg::comm& c) { return !(c.deferred() && c.tables()); }

  rg::span_of_arena shard(std::size_t b, std::size_t worker) const {
    return rg::part_of(buckets_[b], worker, comm_.workers());
  }
  template <class F> void for_others(F&& f) {
    for (std::uint32_t i = 0; i < comm_.workers(); ++i)
      if (const std::uint32_t w = rg::staggered(i, comm_.rank(), comm_.workers(), comm_.workers()); w != comm_.rank())
        f(w);
  }
  // Posts receives into the weights, which the model does not read again in this step: their gradients are ready.
  void post_weights(std::size_t b, std::uint32_t lane) {
    for_others([&](std::uint32_t w) { weights_[b][w] = comm_.recv(w, comm_.weights(shard(b, w)), lane); });
  }
  rg::task<> send_weights(std::size_t b, std::uint32_t lane) {
    if (is_native()) {
      co_await comm_.all_gather(*group_, comm_.weights(buckets_[b]));
      co_return;
    }
    const rg_buffer mine = comm_.weights(shard(b, comm_.rank()));
    for_others([&](std::uint32_t w) { answers_[b][w] = comm_.send(w, mine, lane); });
    for (rg::operation& o : weights_[b]) co_await o;
    for (rg::operation& o : answers_[b]) co_await o;
  }

  rg::comm& comm_;
  const std::vector<rg::span_of_arena>& buckets_;
  std::optional<rg::group> group_;                            // of all workers; if empty, messages are used
  std::vector<operations> sums_, weights_, pushes_, answers_; // [bucket][worker]
};
