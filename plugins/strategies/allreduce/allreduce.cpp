// SPDX-License-Identifier: Apache-2.0
//
// Synchronous data parallelism by all-reduce: every worker sums the gradients of all, bucket by bucket while the
// backward pass still runs, and makes the same update. Buckets take turns on a few lanes: on each lane one is under way
// at a time, so messages meet in the order in which they were posted, and one lane's latency hides behind another's
// bytes. Rows of sparse tables are gathered instead: every worker adds up those of all (regatta/tables.hpp).
#include <regatta/algorithms.hpp>
#include <regatta/tables.hpp>

#include <numeric>

namespace {

struct allreduce {
  struct parameters {
    std::int64_t bucket = 4 << 20;
    std::int64_t lanes = 2;
    std::string algorithm = "auto";
  };
  static constexpr auto fields =
      rg::fields(rg::field("bucket", &parameters::bucket, "bytes of gradients exchanged at once")
                     .unit(RG_UNIT_BYTES)
                     .range(64, 1e10),
                 rg::field("lanes", &parameters::lanes, "buckets under way at once").range(1, 8),
                 rg::field("algorithm", &parameters::algorithm,
                           "auto: the transport's own where it has one, else by size of bucket")
                     .one_of("auto", "native", "ring", "halving_doubling"));

  static rg_plan plan(const parameters& p, const rg_cluster&) {
    rg_plan plan{};
    plan.flags = RG_PLAN_SYNCHRONOUS | RG_PLAN_ROWS;
    plan.lanes = static_cast<std::uint32_t>(p.lanes) + 1; // the last one for rows
    return plan;
  }

  allreduce(rg::comm& c, const parameters& p)
      : comm(c), buckets(c.make_buckets(static_cast<std::uint64_t>(p.bucket))), ready(buckets.size()),
        lanes(std::min<std::size_t>(static_cast<std::size_t>(p.lanes), buckets.size())), algorithm(p.algorithm),
        members(c.workers()), total(c.alloc(2, RG_F64)), rows(c, static_cast<std::uint32_t>(p.lanes)) {
    std::iota(members.begin(), members.end(), 0u);
    c.own_as_worker(c.whole());
    if (members.size() > 1 && (algorithm == "auto" || algorithm == "native")) native = c.split(members);
    if (algorithm == "native" && members.size() > 1 && !native)
      throw rg::error(RG_E_CONFIG,
                      "algorithm = \"native\": this transport has no collectives; use \"ring\" or \"auto\"");
  }

  rg::task<> begin_step(std::uint64_t step, rg::step_rows touched) {
    for (std::size_t lane = 0; lane < lanes; ++lane) running.spawn(run_lane(*this, step, lane));
    return rows.begin_step(touched);
  }
  rg::task<> pull_rows(rg::step_rows touched) { return rows.pull_rows(touched); }
  void on_gradient(std::uint64_t, std::uint32_t bucket) { ready[bucket].set(); }

  rg::task<> end_step(std::uint64_t step) {
    co_await rows.end_step(step);
    co_await running.join();
    if (comm.deferred()) { // all workers hold all gradients: the norm is already that of the whole
      co_await comm.norm(total, false);
      co_await comm.commit(total, step, false);
    }
  }

private:
  static rg::task<> run_lane(allreduce& self, std::uint64_t step, std::size_t lane) {
    for (std::size_t b = lane; b < self.buckets.size(); b += self.lanes) {
      rg::event& ready = self.ready[b];
      co_await ready;
      const rg_buffer gradient = self.comm.gradients(self.buckets[b]);
      co_await reduce(self, gradient, static_cast<std::uint32_t>(lane));
      co_await self.comm.apply_as_worker(self.buckets[b].first, gradient, step);
    }
  }

  static rg::task<> reduce(allreduce& self, rg_buffer gradient, std::uint32_t lane) {
    if (self.members.size() == 1) co_return;
    if (self.native) {
      co_await self.comm.all_reduce(*self.native, gradient);
      co_return;
    }
    // Below this the steps' latency costs more than the ring's even spread of work saves.
    constexpr std::uint64_t small = 64 * 1024;
    const bool ring = self.algorithm == "ring" || (self.algorithm == "auto" && gradient.count * sizeof(float) > small);
    const auto me = static_cast<std::size_t>(self.comm.cluster().worker);
    if (ring)
      co_await rg::ring_all_reduce(self.comm, self.members, me, gradient, lane);
    else
      co_await rg::halving_doubling_all_reduce(self.comm, self.members, me, gradient, lane);
  }

public:
  rg::comm& comm;

private:
  std::vector<rg::span_of_arena> buckets;
  std::vector<rg::event> ready;
  std::size_t lanes;
  std::string algorithm;
  std::vector<std::uint32_t> members;
  rg_buffer total;
  std::optional<std::uint32_t> native;
  rg::replicated_tables rows;
  rg::task_group running;
};

} // namespace

RG_PLUGIN("allreduce", "1.0",
          rg::strategy<allreduce>("allreduce",
                                  "synchronous: every worker sums all gradients and makes the same update"))
