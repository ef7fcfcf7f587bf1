// SPDX-License-Identifier: Apache-2.0
//
// Mistake: left() does nothing, although RG_PLAN_SURVIVES is declared: the next step waits for the dead worker. Caught
// by test `survives`. survivor is the same strategy without the mistake.
#include <regatta/strategy.hpp>

#include <vector>

namespace {

// Worker 0 sums the gradients of all living workers and returns the sum. It must not die itself.
struct survivor {
  struct parameters {};
  static rg_plan plan(const parameters&, const rg_cluster&) {
    rg_plan plan{};
    plan.flags = RG_PLAN_SYNCHRONOUS | RG_PLAN_SURVIVES;
    plan.lanes = 1;
    return plan;
  }
  static bool talks(const parameters&, const rg_cluster&, std::uint32_t a, std::uint32_t b) { return !a || !b; }

  survivor(rg::comm& c, const parameters&) : comm(c), alive(c.workers(), true), total(c.alloc(2, RG_F64)) {
    comm.own(comm.whole(), rg::role::worker);
  }
  rg::task<> end_step(std::uint64_t step) {
    const rg_buffer gradients = comm.gradients(comm.whole());
    if (comm.rank() != 0) {
      co_await comm.send(0, gradients);
      co_await comm.recv(0, gradients);
    }
    for (std::uint32_t w = 1; w < alive.size() && comm.rank() == 0; ++w)
      if (alive[w]) co_await comm.recv_add(w, gradients);
    for (std::uint32_t w = 1; w < alive.size() && comm.rank() == 0; ++w)
      if (alive[w]) co_await comm.send(w, gradients);
    co_await comm.apply(0, gradients, step, rg::role::worker);
    if (comm.deferred()) {
      co_await comm.norm(total, rg::role::worker);
      co_await comm.commit(total, step, rg::role::worker);
    }
  }
  void left(std::uint32_t rank) { alive[rank] = false; }
  rg::comm& comm;

private:
  std::vector<bool> alive;
  rg_buffer total;
};

struct waits_for_the_dead : survivor {
  using survivor::survivor;
  void left(std::uint32_t) {}
};

} // namespace

RG_PLUGIN("survivors", "1.0", rg::strategy<survivor>("survivor", "nothing wrong: goes on without the last worker"),
          rg::strategy<waits_for_the_dead>("waits_for_the_dead", "broken: left() does nothing"))
