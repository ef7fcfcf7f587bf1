// SPDX-License-Identifier: Apache-2.0
//
// Mistake: each lane begins the transport's all-reduce of its next bucket when that of its last one has ended. Lanes
// become free in another order on each rank, so ranks begin the collectives of one group in different orders, and sums
// of different buckets are added up. Caught by test `collectives`.
#include <regatta/data_parallel.hpp>

namespace {

struct collectives_by_lane : rg::data_parallel<collectives_by_lane> {
  struct parameters : rg::data_parallel_parameters {
    parameters() { lanes = 2; }
  };

  static rg_plan plan(const parameters& p, const rg_cluster& c) {
    rg_plan plan = data_parallel::plan(p, c);
    plan.flags |= RG_PLAN_COLLECTIVES;
    return plan;
  }
  collectives_by_lane(rg::comm& c, const parameters& p) : data_parallel(c, p) {
    if (c.is_worker() && c.workers() > 1) group = c.split(members());
  }
  rg::task<> exchange(rg::bucket b) {
    if (group) co_await comm.all_reduce(*group, b.gradients);
  }

private:
  std::optional<rg::group> group;
};

} // namespace

RG_PLUGIN("collectives_by_lane", "1.0",
          rg::strategy<collectives_by_lane>("collectives_by_lane", "broken: begins collectives in any order"))
