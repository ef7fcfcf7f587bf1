// SPDX-License-Identifier: Apache-2.0
//
// Gossip in random pairs: in each step the workers are shuffled, neighbours of the shuffled order average their
// weights, and with an odd number of workers the last one has no partner. At the end all average.
#pragma once

#include <regatta/algorithms.hpp>
#include <regatta/data_parallel.hpp>
#include <regatta/random.hpp>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace test {

// The ways in which a test can spoil it.
struct sound_pairs {
  static constexpr bool takes_turns = false;        // workers without a partner take turns
  static constexpr bool skips_odd_steps = false;    // there is no exchange in every other step
  static constexpr double kept_by_the_higher = 0.5; // the part of its own weights that the higher rank of a pair keeps
  static constexpr double sum_of_parts = 1;         // of the two weights in an average
};

template <class Defect> struct random_pairs : rg::data_parallel<random_pairs<Defect>> {
  using base = rg::data_parallel<random_pairs<Defect>>;
  using base::comm;

  static rg_plan plan(const rg::data_parallel_parameters& p, const rg_cluster&) {
    rg_plan plan{};
    plan.flags = RG_PLAN_AGREES;
    plan.lanes = p.lanes;
    return plan;
  }

  random_pairs(rg::comm& c, const rg::data_parallel_parameters& p) : base(c, p), order(this->members()) {
    std::uint64_t largest = 0;
    for (const rg::span_of_arena& b : this->buckets()) largest = std::max(largest, b.count);
    for (std::uint32_t i = 0; largest && i < this->lanes(); ++i) received.push_back(c.alloc(largest));
  }

  void begin_step(std::uint64_t step) {
    find_partner(step);
    base::begin_step(step);
  }

  rg::task<> update(rg::bucket b) {
    co_await comm.scale(b.gradients, comm.workers()); // of its own batch alone
    const std::uint32_t me = comm.rank(), other = partner;
    if (other != me) {
      const rg_buffer weights = comm.weights(b.range), theirs = rg::sub(received[b.lane], 0, b.range.count);
      const double keeps = me > other ? Defect::kept_by_the_higher : 0.5;
      auto in = comm.recv(other, theirs, b.lane);
      auto out = comm.send(other, weights, b.lane);
      co_await in;
      co_await out;
      co_await comm.scale(weights, keeps);
      co_await comm.axpy(weights, Defect::sum_of_parts - keeps, theirs);
    }
    co_await comm.apply(b.range.first, b.gradients, b.step, rg::role::worker);
  }

  rg::task<> finish() {
    const rg_buffer weights = comm.weights(comm.whole());
    co_await rg::ring_all_reduce(comm, this->members(), comm.rank(), weights, 0);
    co_await comm.scale(weights, 1.0 / comm.workers());
  }

private:
  // All workers shuffle alike: the random numbers depend on the run's seed and the step alone.
  void find_partner(std::uint64_t step) {
    const std::uint32_t n = comm.workers();
    std::iota(order.begin(), order.end(), 0U);
    if (Defect::takes_turns)
      std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(step % n), order.end());
    else
      for (std::uint32_t i = n - 1; i > 0; --i)
        std::swap(order[i], order[rg::to_index(rg::random_bits(comm.seed(), step, i)[0], i + 1)]);
    const auto at = static_cast<std::size_t>(std::ranges::find(order, comm.rank()) - order.begin());
    partner = order[std::min<std::size_t>(at ^ 1, n - 1)];
    if (Defect::skips_odd_steps && step % 2) partner = comm.rank();
  }

  std::vector<std::uint32_t> order; // of the workers in this step
  std::uint32_t partner = 0;        // the worker itself: it has none
  std::vector<rg_buffer> received;  // by lane
};

} // namespace test
