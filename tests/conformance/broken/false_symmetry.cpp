// SPDX-License-Identifier: Apache-2.0
//
// Mistake: the strategy declares that all workers, or all hosts, are alike, but all workers send to worker 0. Caught by
// test `symmetry`.
#include <regatta/strategy.hpp>

namespace {

struct false_symmetry {
  struct parameters {
    bool by_hosts = false;
  };
  static constexpr auto fields =
      rg::fields(rg::field("by_hosts", &parameters::by_hosts, "declares that hosts are alike, not workers"));
  static rg_plan plan(const parameters& p, const rg_cluster&) {
    rg_plan plan{};
    plan.flags = RG_PLAN_SYNCHRONOUS;
    plan.lanes = 1;
    plan.symmetry = p.by_hosts ? RG_SYMMETRY_HOSTS : RG_SYMMETRY_CLASSES;
    return plan;
  }

  false_symmetry(rg::comm& c, const parameters&) : comm(c) { comm.own(comm.whole(), rg::role::worker); }
  rg::task<> end_step(std::uint64_t step) {
    const rg_buffer gradients = comm.gradients(comm.whole());
    for (std::uint32_t w = 1; w < comm.workers(); ++w) {
      if (comm.rank() == 0) {
        co_await comm.recv_add(w, gradients);
      } else if (comm.rank() == w) {
        co_await comm.send(0, gradients);
      }
    }
    for (std::uint32_t w = 1; w < comm.workers(); ++w) {
      if (comm.rank() == 0) {
        co_await comm.send(w, gradients);
      } else if (comm.rank() == w) {
        co_await comm.recv(0, gradients);
      }
    }
    co_await comm.apply(0, gradients, step, rg::role::worker);
  }
  rg::comm& comm;
};

} // namespace

RG_PLUGIN("false_symmetry", "1.0",
          rg::strategy<false_symmetry>("false_symmetry", "broken: worker 0 is unlike the others, but not in its plan"))
