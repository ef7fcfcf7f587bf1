// SPDX-License-Identifier: Apache-2.0
//
// Mistake: worker 0 receives the words on lane 1 before the gradients on lane 0, which the others send first, and
// RG_PLAN_INDEPENDENT is not declared: where lanes block each other the words wait for the gradients. Caught by test
// `lanes`.
#include <regatta/strategy.hpp>

namespace {

struct lanes_block {
  struct parameters {};
  static rg_plan plan(const parameters&, const rg_cluster&) {
    rg_plan plan{};
    plan.flags = RG_PLAN_SYNCHRONOUS;
    plan.lanes = 2;
    return plan;
  }
  lanes_block(rg::comm& c, const parameters&)
      : comm(c), word(c.alloc(1)), total(c.alloc(2, RG_F64)), theirs(c.alloc(c.arena().count)) {
    comm.own(comm.whole(), rg::role::worker);
  }
  rg::task<> end_step(std::uint64_t step) {
    const rg_buffer gradients = comm.gradients(comm.whole());
    if (comm.rank() != 0) {
      auto sent = comm.send(0, gradients, 0);
      auto told = comm.send(0, word, 1);
      co_await told;
      co_await sent;
      co_await comm.recv(0, gradients, 0);
    } else {
      for (std::uint32_t w = 1; w < comm.workers(); ++w) {
        co_await comm.recv(w, word, 1);
        co_await comm.recv(w, theirs, 0);
        co_await comm.axpy(gradients, 1, theirs);
      }
      for (std::uint32_t w = 1; w < comm.workers(); ++w) co_await comm.send(w, gradients, 0);
    }
    co_await comm.apply(0, gradients, step, rg::role::worker);
    if (!comm.deferred()) co_return;
    co_await comm.norm(total, rg::role::worker);
    co_await comm.commit(total, step, rg::role::worker);
  }
  rg::comm& comm;

private:
  rg_buffer word, total, theirs;
};

} // namespace

RG_PLUGIN("lanes_block", "1.0", rg::strategy<lanes_block>("lanes_block", "broken: needs independent lanes, unsaid"))
