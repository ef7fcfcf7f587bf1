// SPDX-License-Identifier: Apache-2.0
//
// Base of strategies in which every worker updates its weights bucket by bucket while the backward pass still runs. It
// cuts the arena into buckets, waits until a bucket's gradients are final, calls the strategy for it, and clips by
// global norm where the run does. The shortest strategy is
//
//   struct mine : rg::data_parallel<mine> {
//     using data_parallel::data_parallel;
//     rg::task<> exchange(rg::bucket b); // [loop] leaves the sum of all workers' gradients in b.gradients
//   };
//   RG_PLUGIN("mine", "1.0", rg::strategy<mine>("mine", "one line"))
//
// A strategy replaces a member of the base by a public one of the same name:
//   parameters, fields, plan    with more parameters, or other promises than RG_PLAN_SYNCHRONOUS
//   exchange(b), or update(b)   update() also applies the gradients, so that a strategy may do more than to apply a sum
//   sum_norms(total)            if a worker does not apply the gradients of all elements
//   begin_step, end_step, ...   activities of a strategy; they must call the base's begin_step and end_step
// Buckets take turns on lanes. A lane carries one bucket at a time, so that sends and receives match in order, and the
// latency of one lane overlaps with the bytes of another. Lanes end their buckets in any order, another one on each
// worker: collectives of the transport, which all workers begin in the same order, need an event for each bucket that
// says that its collective has begun (as strategy allreduce has), or one lane.
#pragma once

#include <regatta/strategy.hpp>

#include <cstdint>
#include <numeric>
#include <vector>

namespace rg {

// The parameters of data_parallel. A strategy with more of them derives its own struct, and appends its fields with
// std::tuple_cat.
struct data_parallel_parameters {
  std::uint64_t bucket = 4 << 20; // bytes
  std::uint32_t lanes = 1;
};
inline constexpr auto data_parallel_fields =
    fields(field("bucket", &data_parallel_parameters::bucket, "bytes that are exchanged at once")
               .unit(RG_UNIT_BYTES) // a user may write "1MiB"
               .range(64, 1e10),
           field("lanes", &data_parallel_parameters::lanes, "buckets that are exchanged at once").range(1, 8));

// A bucket in a step.
struct bucket {
  std::uint64_t step;  // from 0
  std::uint32_t index; // among the buckets, in the order of the arena
  std::uint32_t lane;  // carries no other bucket until the strategy is done with this one; the same on all workers
  span_of_arena range; // the bucket's elements of the arena
  rg_buffer gradients; // of these elements
};

template <class S> class data_parallel {
public:
  using parameters = data_parallel_parameters;
  static constexpr auto fields = data_parallel_fields;
  static rg_plan plan(const data_parallel_parameters& p, const rg_cluster&) {
    rg_plan plan{};
    plan.flags = RG_PLAN_SYNCHRONOUS; // same weights on all workers after every step; a run checks the final ones
    plan.lanes = p.lanes;
    return plan;
  }

  // [main] Cuts the arena into buckets of p.bucket bytes (comm::make_buckets()), and makes
  // this worker the one that updates all its weights.
  data_parallel(rg::comm& c, const data_parallel_parameters& p) : data_parallel(c, c.make_buckets(p.bucket), p.lanes) {
    c.own(c.whole(), role::worker);
  }
  // [main] For other buckets, which the strategy has passed to comm::set_buckets(). The strategy calls comm::own()
  // itself.
  data_parallel(rg::comm& c, std::vector<span_of_arena> buckets, std::uint32_t lanes)
      : comm(c), buckets_(std::move(buckets)), ready_(buckets_.size()),
        lanes_(static_cast<std::uint32_t>(std::min<std::size_t>(lanes, buckets_.size()))), members_(c.workers()),
        total_(c.alloc(2, RG_F64)) {
    std::iota(members_.begin(), members_.end(), 0u);
  }

  void begin_step(std::uint64_t step) {
    for (std::uint32_t lane = 0; lane < lanes_; ++lane) running_.spawn(run_lane(step, lane));
  }
  void on_gradient(std::uint64_t, std::uint32_t bucket) { ready_[bucket].set(); }
  task<> end_step(std::uint64_t step) {
    co_await running_.join();
    if (!comm.deferred()) co_return;
    co_await comm.norm(total_, role::worker);
    co_await self().sum_norms(total_);
    co_await comm.commit(total_, step, role::worker);
  }

  // [loop] Called once in each step for each bucket, whose gradients are final.
  task<> update(bucket b) {
    static_assert(
        requires(S s) {
          { s.exchange(b) } -> std::same_as<task<>>;
        },
        "a strategy on data_parallel needs, in public: rg::task<> exchange(rg::bucket b), or update() of this form");
    co_await self().exchange(b);
    co_await comm.apply(b.range.first, b.gradients, b.step, role::worker);
  }
  // [loop] Called in each step with deferred updates. Replaces `total`, the result of this worker's comm::norm(), by
  // its sum over workers that together hold each element once. Does nothing here: every worker applies the gradients of
  // all elements, so its own result is that of all elements already.
  task<> sum_norms(rg_buffer) { co_return; }

  rg::comm& comm; // public: coroutine frames come from its pool

protected:
  const std::vector<span_of_arena>& buckets() const { return buckets_; }
  // Returns the number of lanes in use: no more than there are buckets.
  std::uint32_t lanes() const { return lanes_; }
  // Returns the ranks of all workers, for regatta/algorithms.hpp: this one's index is comm.rank().
  const std::vector<std::uint32_t>& members() const { return members_; }
  // [main] Sets lanes() to 1. Call it in the strategy's constructor.
  void use_one_lane() { lanes_ = std::min(lanes_, 1u); }

private:
  S& self() { return static_cast<S&>(*this); }
  task<> run_lane(std::uint64_t step, std::uint32_t lane) {
    static_assert(
        requires(S s, bucket b) {
          { s.update(b) } -> std::same_as<task<>>;
        },
        "update must be public and of this form: rg::task<> update(rg::bucket b)");
    for (std::uint32_t b = lane; b < buckets_.size(); b += lanes_) {
      event& gradient_ready = ready_[b];
      co_await gradient_ready;
      co_await self().update({step, b, lane, buckets_[b], comm.gradients(buckets_[b])});
    }
  }

  std::vector<span_of_arena> buckets_;
  std::vector<event> ready_;
  std::uint32_t lanes_;
  std::vector<std::uint32_t> members_;
  rg_buffer total_; // {number of non-finite elements, sum of squares}
  task_group running_;
};

} // namespace rg
