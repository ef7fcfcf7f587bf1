// SPDX-License-Identifier: Apache-2.0
//
// Local SGD (Stich, Local SGD converges fast and communicates little, 2019): each worker trains alone, with its own
// optimizer, and all average their weights every k steps. With k = 1 and plain SGD this is synchronous training.
// Momentum stays local and is not averaged.
#include <regatta/algorithms.hpp>

#include <numeric>

namespace {

struct local_sgd {
  struct parameters {
    std::int64_t k = 8;
    std::int64_t bucket = 4 << 20;
    std::int64_t lanes = 2;
  };
  static constexpr auto fields = rg::fields(
      rg::field("k", &parameters::k, "steps between two averages").range(1, 1e9),
      rg::field("bucket", &parameters::bucket, "bytes of weights averaged at once").unit(RG_UNIT_BYTES).range(64, 1e10),
      rg::field("lanes", &parameters::lanes, "buckets that are exchanged at once").range(1, 8));

  static rg_plan plan(const parameters& p, const rg_cluster&) {
    rg_plan plan{};
    plan.lanes = static_cast<std::uint32_t>(p.lanes);
    plan.flags = RG_PLAN_BOUNDED | RG_PLAN_AGREES; // the step that averages waits for all workers
    plan.period = static_cast<std::uint64_t>(p.k);
    return plan;
  }

  local_sgd(rg::comm& c, const parameters& p)
      : comm(c), buckets(c.make_buckets(static_cast<std::uint64_t>(p.bucket))), ready(buckets.size()),
        lanes(std::min<std::size_t>(static_cast<std::size_t>(p.lanes), buckets.size())),
        k(static_cast<std::uint64_t>(p.k)), members(c.workers()), total(c.alloc(2, RG_F64)) {
    std::iota(members.begin(), members.end(), 0u);
    c.own(c.whole(), rg::role::worker);
  }

  void begin_step(std::uint64_t step) {
    for (std::size_t lane = 0; lane < lanes; ++lane) running.spawn(train(step, lane));
  }
  void on_gradient(std::uint64_t, std::uint32_t bucket) { ready[bucket].set(); }

  rg::task<> end_step(std::uint64_t step) {
    co_await running.join();
    if (comm.deferred()) { // each worker clips by its own norm
      co_await comm.norm(total, rg::role::worker);
      co_await comm.commit(total, step, rg::role::worker);
      if (closes(step)) co_await average_all();
    }
    steps = step + 1;
  }
  rg::task<> finish() {
    if (steps % k) co_await average_all();
  }

  rg::comm& comm;

private:
  bool closes(std::uint64_t step) const { return (step + 1) % k == 0; }

  // Gradients are divided by the global batch; a worker that trains alone needs the mean over its own batch.
  rg::task<> train(std::uint64_t step, std::size_t lane) {
    for (std::size_t b = lane; b < buckets.size(); b += lanes) {
      rg::event& gradient_ready = ready[b];
      co_await gradient_ready;
      const rg_buffer gradient = comm.gradients(buckets[b]);
      co_await comm.scale(gradient, comm.workers());
      co_await comm.apply(buckets[b].first, gradient, step, rg::role::worker);
      // This step does not read these weights any more.
      if (!comm.deferred() && closes(step)) co_await average(b, lane);
    }
  }
  rg::task<> average(std::size_t b, std::size_t lane) {
    if (members.size() == 1) co_return;
    const rg_buffer weights = comm.weights(buckets[b]);
    co_await rg::ring_all_reduce(comm, members, static_cast<std::size_t>(comm.cluster().worker), weights,
                                 static_cast<std::uint32_t>(lane));
    co_await comm.scale(weights, 1.0 / comm.workers());
  }
  rg::task<> average_lane(std::size_t lane) {
    for (std::size_t b = lane; b < buckets.size(); b += lanes) co_await average(b, lane);
  }
  rg::task<> average_all() {
    for (std::size_t lane = 0; lane < lanes; ++lane) running.spawn(average_lane(lane));
    co_await running.join();
  }

  std::vector<rg::span_of_arena> buckets;
  std::vector<rg::event> ready;
  std::size_t lanes;
  std::uint64_t k, steps = 0;
  std::vector<std::uint32_t> members;
  rg_buffer total;
  rg::task_group running;
};

} // namespace

RG_PLUGIN("local_sgd", "0.1.0",
          rg::strategy<local_sgd>("local_sgd", "workers train alone and average their weights every k steps"))
