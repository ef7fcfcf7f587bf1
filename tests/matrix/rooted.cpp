// SPDX-License-Identifier: Apache-2.0
//
// A strategy for tests, made of the transport's own collectives or of those over messages: gradients are added up share
// by share and gathered, the last worker alone makes the update, and broadcasts the weights.
#include <regatta/algorithms.hpp>

#include <numeric>
#include <vector>

namespace {

struct rooted {
  struct parameters {
    std::string broadcast = "native";
    bool lies = false;
  };
  static constexpr auto fields =
      rg::fields(rg::field("broadcast", &parameters::broadcast, "by whom").one_of("native", "tree", "scatter_gather"),
                 rg::field("lies", &parameters::lies, "declares that all workers are alike"));

  static rg_plan plan(const parameters& p, const rg_cluster&) {
    rg_plan plan{};
    if (p.lies) plan.symmetry = RG_SYMMETRY_ROTATION;
    plan.flags = RG_PLAN_SYNCHRONOUS;
    plan.lanes = 1;
    return plan;
  }

  rooted(rg::comm& c, const parameters& p) : comm(c), how(p.broadcast), root(c.workers() - 1), members(c.workers()) {
    std::iota(members.begin(), members.end(), 0u);
    if (how == "native") {
      for (const rg_op_kind kind : {RG_OP_REDUCE_SCATTER, RG_OP_ALL_GATHER, RG_OP_BROADCAST})
        if (!c.offers(kind)) throw rg::error(RG_E_CONFIG, "the transport lacks a collective");
      group = c.split(members);
    }
    if (c.rank() == root) c.own(c.whole(), rg::role::worker);
  }

  rg::task<> end_step(std::uint64_t step) {
    const rg_buffer gradients = comm.gradients(comm.whole()), weights = comm.weights(comm.whole());
    if (how == "native") {
      co_await comm.reduce_scatter(*group, gradients);
      co_await comm.all_gather(*group, gradients);
    } else {
      co_await rg::ring_reduce_scatter(comm, members, comm.rank(), gradients, 0);
      co_await rg::ring_all_gather(comm, members, comm.rank(), gradients, 0);
    }
    if (comm.rank() == root) co_await comm.apply(0, gradients, step, rg::role::worker);
    if (how == "native")
      co_await comm.broadcast(*group, weights, root);
    else if (how == "tree")
      co_await rg::tree_broadcast(comm, members, comm.rank(), root, weights, 0);
    else
      co_await rg::scatter_gather_broadcast(comm, members, comm.rank(), root, weights, 0);
  }

  rg::comm& comm;
  std::string how;
  std::uint32_t root;
  std::optional<rg::group> group;
  std::vector<std::uint32_t> members;
};

} // namespace

RG_PLUGIN("rooted", "0.1.0", rg::strategy<rooted>("rooted", "one worker updates, for tests"))
