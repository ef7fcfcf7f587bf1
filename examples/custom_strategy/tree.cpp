// SPDX-License-Identifier: Apache-2.0
//
// A strategy in C++: synchronous training with an all-reduce along a binomial tree. Gradients are summed towards worker
// 0, which sends the sum back down the same tree: 2 ceil(log2 n) messages in sequence, each of a whole bucket. So it
// has few steps and many bytes; the ring of regatta/algorithms.hpp has many steps and few bytes.
#include <regatta/strategy.hpp>

#include <bit>

namespace {

struct tree {
  struct parameters {
    std::int64_t bucket = 4 << 20;
  };
  static constexpr auto fields =
      rg::fields(rg::field("bucket", &parameters::bucket, "bytes of gradients summed at once")
                     .unit(RG_UNIT_BYTES) // a user may write "1MiB"
                     .range(64, 1e10));

  // [any] Says what the strategy needs. Depends on its arguments alone, since the engine asks before anything starts.
  // SYNCHRONOUS promises that all workers hold the same weights after every step; the engine checks it to the bit.
  static rg_plan plan(const parameters&, const rg_cluster&) {
    rg_plan plan{};
    plan.flags = RG_PLAN_SYNCHRONOUS;
    plan.lanes = 1;
    return plan;
  }
  // [any] Only these pairs are connected: a worker and its parent, whose number is the worker's without the lowest bit.
  static bool talks(const parameters&, const rg_cluster&, std::uint32_t a, std::uint32_t b) {
    const std::uint32_t child = std::max(a, b), parent = std::min(a, b);
    return parent == (child & (child - 1));
  }

  // [main] Only the constructor may allocate regions, claim the weights that this rank updates, and set buckets.
  tree(rg::comm& c, const parameters& p)
      : comm(c), buckets(c.make_buckets(static_cast<std::uint64_t>(p.bucket))), ready(buckets.size()),
        total(c.alloc(2, RG_F64)) {
    comm.own(comm.whole(), rg::role::worker); // every worker updates all weights
  }

  // [loop] A coroutine runs during the backward pass and sums each bucket once its gradients are final.
  void begin_step(std::uint64_t step) { running.spawn(sum_all(step)); }
  void on_gradient(std::uint64_t, std::uint32_t bucket) { ready[bucket].set(); }

  // [loop] The task ends when the next step may begin.
  rg::task<> end_step(std::uint64_t step) {
    co_await running.join(); // rethrows exceptions of sum_all: if a peer is gone, the step ends here
    if (comm.deferred()) {   // clipping by global norm: apply() only added to the norm, commit() updates
      co_await comm.norm(total, rg::role::worker);
      co_await comm.commit(total, step, rg::role::worker);
    }
  }

  rg::comm& comm; // public and of this name: coroutine frames come from its pool, so that a step allocates nothing

private:
  rg::task<> sum_all(std::uint64_t step) {
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      rg::event& gradient_ready = ready[b];
      co_await gradient_ready;
      const rg_buffer gradient = comm.gradients(buckets[b]);
      co_await sum(gradient);
      co_await comm.apply(buckets[b].first, gradient, step, rg::role::worker);
    }
  }

  // Every element is summed on the path to the root, in an order that depends on the ranks alone, and copied from the
  // root. So replicas are equal to the bit, in every run.
  rg::task<> sum(rg_buffer gradient) {
    const std::uint32_t n = comm.workers(), me = comm.rank();
    // The lowest bit of a rank's number is the distance to its parent; its children are at all smaller powers of two.
    const std::uint32_t to_parent = me ? me & (~me + 1) : std::bit_ceil(n);

    for (std::uint32_t d = 1; d < to_parent; d *= 2)
      if (me + d < n) co_await comm.recv_add(me + d, gradient);
    if (me) {
      co_await comm.send(me - to_parent, gradient);
      co_await comm.recv(me - to_parent, gradient);
    }
    for (std::uint32_t d = to_parent / 2; d > 0; d /= 2)
      if (me + d < n) co_await comm.send(me + d, gradient);
  }

  std::vector<rg::span_of_arena> buckets;
  std::vector<rg::event> ready;
  rg_buffer total; // {number of non-finite elements, sum of squares}
  rg::task_group running;
};

} // namespace

RG_PLUGIN("custom_strategy", "1.0", rg::strategy<tree>("tree", "example: all-reduce along a binomial tree"))
