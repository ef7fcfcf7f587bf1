// SPDX-License-Identifier: Apache-2.0
//
// Mistake: talks() says that no ranks exchange messages, but the strategy sends. Caught by test `drain`, and in a run.
#include <regatta/strategy.hpp>

namespace {

// Each worker adds the gradients of the worker before it.
struct talks_to_none {
  struct parameters {};
  static rg_plan plan(const parameters&, const rg_cluster&) {
    rg_plan plan{};
    plan.lanes = 1;
    return plan;
  }
  static bool talks(const parameters&, const rg_cluster&, std::uint32_t, std::uint32_t) { return false; }

  talks_to_none(rg::comm& c, const parameters&) : comm(c), copy(c.alloc(c.arena().count)) {
    comm.own(comm.whole(), rg::role::worker);
  }
  rg::task<> end_step(std::uint64_t step) {
    const std::uint32_t n = comm.workers(), next = (comm.rank() + 1) % n, last = (comm.rank() + n - 1) % n;
    const rg_buffer mine = comm.gradients(comm.whole());
    auto in = comm.recv(last, copy);
    co_await comm.send(next, mine);
    co_await in;
    co_await comm.axpy(mine, 1, copy);
    co_await comm.apply(0, mine, step, rg::role::worker);
  }
  rg::comm& comm;

private:
  rg_buffer copy;
};

} // namespace

RG_PLUGIN("talks_to_none", "1.0", rg::strategy<talks_to_none>("talks_to_none", "broken: talks() says no, but it sends"))
