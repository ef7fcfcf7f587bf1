// SPDX-License-Identifier: Apache-2.0
//
// A strategy for tests that says that all workers are alike, but only worker 0 sends a message, and only worker 1
// receives it.
#include <regatta/strategy.hpp>

namespace {

struct one_message {
  struct parameters {};

  static rg_plan plan(const parameters&, const rg_cluster&) {
    rg_plan plan{};
    plan.symmetry = RG_SYMMETRY_ROTATION;
    plan.lanes = 1;
    return plan;
  }

  one_message(rg::comm& c, const parameters&) : comm(c) {}

  rg::task<> end_step(std::uint64_t) {
    const rg_buffer first = comm.gradients({0, 16});
    if (comm.rank() == 0) co_await comm.send(1, first, 0);
    if (comm.rank() == 1) co_await comm.recv(0, first, 0);
  }

  rg::comm& comm;
};

} // namespace

RG_PLUGIN("one_message", "0.1.0", rg::strategy<one_message>("one_message", "a false symmetry, for tests"))
