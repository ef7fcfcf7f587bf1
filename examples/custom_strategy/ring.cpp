// SPDX-License-Identifier: Apache-2.0
//
// The shortest useful strategy: an all-reduce of all gradients after the backward pass, without overlap.
#include <regatta/algorithms.hpp>

#include <numeric>

struct ring {
  static rg_plan plan(const rg::parameters_t<ring>&, const rg_cluster&) {
    rg_plan plan{};
    plan.flags = RG_PLAN_SYNCHRONOUS; // same weights on all workers after every step; a run checks the final ones
    plan.lanes = 1;
    return plan;
  }
  ring(rg::comm& c, const rg::parameters_t<ring>&) : comm(c), members(c.workers()), total(c.alloc(2, RG_F64)) {
    std::iota(members.begin(), members.end(), 0u);
    comm.own(comm.whole(), rg::role::worker); // every worker updates all weights
  }
  rg::task<> end_step(std::uint64_t step) { // the gradients of this step are final
    const rg_buffer gradients = comm.gradients(comm.whole());
    co_await rg::ring_all_reduce(comm, members, comm.rank(), gradients, 0);
    co_await comm.apply(0, gradients, step, rg::role::worker);
    if (!comm.deferred()) co_return; // below: clipping by global norm
    co_await comm.norm(total, rg::role::worker);
    co_await comm.commit(total, step, rg::role::worker);
  }
  rg::comm& comm;
  std::vector<std::uint32_t> members;
  rg_buffer total;
};

RG_PLUGIN("custom_strategy_ring", "1.0", rg::strategy<ring>("ring", "example: an all-reduce after the backward pass"))
