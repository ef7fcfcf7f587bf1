// SPDX-License-Identifier: Apache-2.0
//
// A strategy in C++: synchronous training by a binomial tree. Gradients are summed towards worker 0, whose sum then
// goes back down the same tree: 2 ceil(log2 n) messages one after the other, in each of which whole buckets travel. Few
// steps, many bytes; the ring of regatta/algorithms.hpp is the other extreme.
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

  // [any] What it is and what it needs. Pure: the engine asks before anything starts. SYNCHRONOUS promises that all
  // workers hold the same weights after every step, and the engine checks that they do, to the bit.
  static rg_plan plan(const parameters&, const rg_cluster&) {
    rg_plan plan{};
    plan.flags = RG_PLAN_SYNCHRONOUS;
    plan.lanes = 1;
    return plan;
  }
  // [any] Only these pairs are connected: a worker and its parent, which is its number without the lowest bit.
  static bool talks(const parameters&, const rg_cluster&, std::uint32_t a, std::uint32_t b) {
    const std::uint32_t child = std::max(a, b), parent = std::min(a, b);
    return parent == (child & (child - 1));
  }

  // [main] The only place to allocate regions, to claim what this rank updates, and to set buckets.
  tree(rg::comm& c, const parameters& p)
      : comm(c), buckets(c.make_buckets(static_cast<std::uint64_t>(p.bucket))), ready(buckets.size()),
        total(c.alloc(2, RG_F64)) {
    comm.own_as_worker(comm.whole()); // every worker updates all weights
  }

  // [loop] A coroutine runs beside the backward pass and sums each bucket as it becomes ready.
  void begin_step(std::uint64_t step) { running.spawn(sum_all(*this, step)); }
  void on_gradient(std::uint64_t, std::uint32_t bucket) { ready[bucket].set(); }

  // [loop] Returns when the next step may begin.
  rg::task<> end_step(std::uint64_t step) {
    co_await running.join(); // throws what sum_all threw: a peer that is gone ends the step here
    if (comm.deferred()) {   // clipping by global norm: apply() has only counted, commit() updates
      co_await comm.norm(total, false);
      co_await comm.commit(total, step, false);
    }
  }

  rg::comm& comm; // by this name: coroutine frames come from its pool, so a step allocates nothing

private:
  // Coroutines of the SDK are static and take the object as their first argument.
  static rg::task<> sum_all(tree& self, std::uint64_t step) {
    for (std::size_t b = 0; b < self.buckets.size(); ++b) {
      rg::event& ready = self.ready[b];
      co_await ready;
      const rg_buffer gradient = self.comm.gradients(self.buckets[b]);
      co_await sum(self, gradient);
      co_await self.comm.apply_as_worker(self.buckets[b].first, gradient, step);
    }
  }

  // Every element is summed once, at the root, in an order that depends on the ranks alone, and copied from there: so
  // replicas are bit-identical, run after run.
  static rg::task<> sum(tree& self, rg_buffer gradient) {
    const std::uint32_t n = self.comm.workers(), me = self.comm.rank();
    // The lowest bit of my number is the distance to my parent; my children are at all smaller powers of two.
    const std::uint32_t to_parent = me ? me & (~me + 1) : std::bit_ceil(n);

    for (std::uint32_t d = 1; d < to_parent; d *= 2)
      if (me + d < n) co_await self.comm.recv_add(me + d, gradient);
    if (me) {
      co_await self.comm.send(me - to_parent, gradient);
      co_await self.comm.recv(me - to_parent, gradient);
    }
    for (std::uint32_t d = to_parent / 2; d > 0; d /= 2)
      if (me + d < n) co_await self.comm.send(me + d, gradient);
  }

  std::vector<rg::span_of_arena> buckets;
  std::vector<rg::event> ready;
  rg_buffer total; // {elements that are not finite, sum of squares}
  rg::task_group running;
};

} // namespace

RG_PLUGIN("custom_strategy", "1.0", rg::strategy<tree>("tree", "example: all-reduce along a binomial tree"))
