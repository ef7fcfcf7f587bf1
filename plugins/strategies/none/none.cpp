// SPDX-License-Identifier: Apache-2.0
//
// No communication: every worker trains alone. The control that everything else is measured against.
#include <regatta/strategy.hpp>

namespace {

struct none {
  static rg_plan plan(const rg::parameters_t<none>&, const rg_cluster&) { return {}; }
  static bool talks(const rg::parameters_t<none>&, const rg_cluster&, std::uint32_t, std::uint32_t) { return false; }

  none(rg::comm& c, const rg::parameters_t<none>&) : comm(c), total(c.alloc(2, RG_F64)) { c.own_as_worker(c.whole()); }

  rg::task<> end_step(std::uint64_t step) {
    co_await comm.apply_as_worker(0, comm.gradients(comm.whole()), step);
    if (comm.deferred()) {
      co_await comm.norm(total, false);
      co_await comm.commit(total, step, false);
    }
  }

  rg::comm& comm;
  rg_buffer total;
};

} // namespace

RG_PLUGIN("none", "1.0", rg::strategy<none>("none", "no communication: every worker trains alone, the control"))
