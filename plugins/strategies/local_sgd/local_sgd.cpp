// SPDX-License-Identifier: Apache-2.0
//
// Local SGD (Stich, Local SGD converges fast and communicates little, 2019): each worker trains alone, with its own
// optimizer, and all average their weights every k steps. With k = 1 and plain SGD this is synchronous training.
// Momentum stays local and is not averaged.
#include <regatta/algorithms.hpp>
#include <regatta/data_parallel.hpp>

namespace {

struct local_sgd : rg::data_parallel<local_sgd> {
  struct parameters : rg::data_parallel_parameters {
    std::uint64_t k = 8;
    parameters() { lanes = 2; }
  };
  static constexpr auto fields = std::tuple_cat(
      rg::fields(rg::field("k", &parameters::k, "steps between two averages").range(1, 1e9)), rg::data_parallel_fields);

  static rg_plan plan(const parameters& p, const rg_cluster&) {
    rg_plan plan{};
    plan.lanes = p.lanes;
    plan.flags = RG_PLAN_BOUNDED | RG_PLAN_AGREES | RG_PLAN_RESUMES; // the step that averages waits for all workers
    plan.symmetry = RG_SYMMETRY_ROTATION;                            // weights go around a ring
    plan.period = p.k;
    return plan;
  }

  static bool talks(const parameters&, const rg_cluster& c, std::uint32_t a, std::uint32_t b) {
    return rg::ring_neighbours(a, b, c.workers);
  }

  local_sgd(rg::comm& c, const parameters& p) : data_parallel(c, p), k(p.k) {}

  // Gradients are divided by the global batch; a worker that trains alone needs the mean over its own batch.
  rg::task<> update(rg::bucket b) {
    co_await comm.scale(b.gradients, comm.workers());
    co_await comm.apply(b.range.first, b.gradients, b.step, rg::role::worker);
    // This step does not read these weights any more.
    if (!comm.deferred() && closes(b.step)) co_await average(b.range, b.lane);
  }
  rg::task<> end_step(std::uint64_t step) {
    co_await data_parallel::end_step(step); // with deferred updates each worker clips by its own norm
    if (comm.deferred() && closes(step)) co_await average_all();
    steps = step + 1;
  }
  rg::task<> finish() {
    if (steps % k) co_await average_all();
  }
  void checkpoint(rg::saved_state& s) { steps = s.step(); }

private:
  bool closes(std::uint64_t step) const { return (step + 1) % k == 0; }

  rg::task<> average(rg::span_of_arena range, std::uint32_t lane) {
    if (comm.workers() == 1) co_return;
    const rg_buffer weights = comm.weights(range);
    co_await rg::ring_all_reduce(comm, members(), comm.rank(), weights, lane);
    co_await comm.scale(weights, 1.0 / comm.workers());
  }
  rg::task<> average_all() {
    for (const rg::span_of_arena& bucket : buckets()) co_await average(bucket, 0);
  }

  std::uint64_t k, steps = 0;
};

} // namespace

RG_PLUGIN("local_sgd", "0.1.0",
          rg::strategy<local_sgd>("local_sgd", "workers train alone and average their weights every k steps"))
