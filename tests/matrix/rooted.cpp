// SPDX-License-Identifier: Apache-2.0
//
// A strategy for tests, made of the transport's own collectives: gradients are added up share by share and gathered, the
// last worker alone makes the update, and broadcasts the weights.
#include <regatta/strategy.hpp>

#include <numeric>
#include <vector>

namespace {

struct rooted {
  static rg_plan plan(const rg::parameters_t<rooted>&, const rg_cluster&) {
    rg_plan plan{};
    plan.flags = RG_PLAN_SYNCHRONOUS;
    plan.lanes = 1;
    return plan;
  }

  rooted(rg::comm& c, const rg::parameters_t<rooted>&) : comm(c), root(c.workers() - 1) {
    for (const rg_op_kind kind : {RG_OP_REDUCE_SCATTER, RG_OP_ALL_GATHER, RG_OP_BROADCAST})
      if (!c.offers(kind)) throw rg::error(RG_E_CONFIG, "the transport lacks a collective");
    std::vector<std::uint32_t> members(c.workers());
    std::iota(members.begin(), members.end(), 0u);
    group = c.split(members).value();
    if (c.rank() == root) c.own_as_worker(c.whole());
  }

  rg::task<> end_step(std::uint64_t step) {
    const rg_buffer gradients = comm.gradients(comm.whole());
    co_await comm.reduce_scatter(group, gradients);
    co_await comm.all_gather(group, gradients);
    if (comm.rank() == root) co_await comm.apply_as_worker(0, gradients, step);
    co_await comm.broadcast(group, comm.weights(comm.whole()), root);
  }

  rg::comm& comm;
  std::uint32_t root, group = 0;
};

} // namespace

RG_PLUGIN("rooted", "0.1.0", rg::strategy<rooted>("rooted", "one worker updates, for tests"))
