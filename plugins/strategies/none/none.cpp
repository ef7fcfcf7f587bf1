// SPDX-License-Identifier: Apache-2.0
//
// No communication: every worker trains alone. It serves as the baseline and as the contention control.
//
// Gradients are divided by the global batch. With n workers they are multiplied by n, which yields the mean over the
// worker's own batch: a worker trains as in a run without other workers.
#include <regatta/strategy.hpp>

namespace {

struct none {
  static rg_plan plan(const rg::parameters_t<none>&, const rg_cluster&) {
    rg_plan plan{};
    plan.flags = RG_PLAN_ROWS;
    return plan;
  }
  static bool talks(const rg::parameters_t<none>&, const rg_cluster&, std::uint32_t, std::uint32_t) { return false; }

  none(rg::comm& c, const rg::parameters_t<none>&) : comm(c), total(c.alloc(2, RG_F64)), touched(c.tables()) {
    c.own(c.whole(), rg::role::worker);
    for (std::uint32_t t = 0; t < c.tables(); ++t) c.own_rows(t, rg::role::worker);
  }

  rg::task<> begin_step(std::uint64_t, rg::step_rows rows) { return pull_rows(rows); }
  rg::task<> pull_rows(rg::step_rows rows) {
    for (std::uint32_t t = 0; t < rows.size(); ++t) {
      touched[t] = rows[t].size();
      co_await comm.rows_show(t, touched[t]);
    }
  }

  rg::task<> end_step(std::uint64_t step) {
    // In chunks, so that a chunk is still in the cache when it is applied.
    constexpr std::uint64_t most = 256 * 1024;
    const std::uint64_t count = comm.arena().count;
    for (std::uint64_t first = 0; first < count; first += most) {
      const rg_buffer gradients = comm.gradients({first, std::min(most, count - first)});
      if (comm.workers() > 1) co_await comm.scale(gradients, comm.workers());
      co_await comm.apply(first, gradients, step, rg::role::worker);
    }
    for (std::uint32_t t = 0; t < comm.tables(); ++t) {
      const rg_buffer gradients = comm.row_gradients(t, 0, touched[t]);
      if (comm.workers() > 1) co_await comm.scale(gradients, comm.workers());
      co_await comm.rows_apply(t, comm.row_numbers(t, 0, touched[t]), gradients, step, rg::role::worker);
    }
    if (comm.deferred()) {
      co_await comm.norm(total, rg::role::worker);
      co_await comm.commit(total, step, rg::role::worker);
    }
  }

  rg::comm& comm;
  rg_buffer total;
  std::vector<std::uint64_t> touched; // rows of this step, by table
};

} // namespace

RG_PLUGIN("none", "0.1.0", rg::strategy<none>("none", "no communication: every worker trains alone, the control"))
