// SPDX-License-Identifier: Apache-2.0
//
// Mistake: the velocity that the strategy keeps is not in the checkpoint, although RG_PLAN_RESUMES is declared. Caught
// by test `resumes`. saves_state is the same strategy without the mistake.
#include <regatta/strategy.hpp>

namespace {

// Each worker trains alone, with a momentum of its own.
struct saves_state {
  struct parameters {};
  static rg_plan plan(const parameters&, const rg_cluster&) {
    rg_plan plan{};
    plan.flags = RG_PLAN_RESUMES;
    return plan;
  }
  static bool talks(const parameters&, const rg_cluster&, std::uint32_t, std::uint32_t) { return false; }

  saves_state(rg::comm& c, const parameters&) : comm(c), velocity(c.alloc(c.arena().count)) {
    comm.own(comm.whole(), rg::role::worker);
  }
  rg::task<> end_step(std::uint64_t step) {
    co_await comm.scale(velocity, 0.5);
    co_await comm.axpy(velocity, 1, comm.gradients(comm.whole()));
    co_await comm.apply(0, velocity, step, rg::role::worker);
  }
  void checkpoint(rg::saved_state& s) { s.buffer("velocity", velocity); }
  rg::comm& comm;

private:
  rg_buffer velocity;
};

struct forgets_state : saves_state {
  using saves_state::saves_state;
  void checkpoint(rg::saved_state&) {}
};

} // namespace

RG_PLUGIN("forgets_state", "1.0", rg::strategy<saves_state>("saves_state", "nothing wrong: saves its velocity"),
          rg::strategy<forgets_state>("forgets_state", "broken: its velocity is not in the checkpoint"))
