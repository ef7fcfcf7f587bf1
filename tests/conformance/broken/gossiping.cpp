// SPDX-License-Identifier: Apache-2.0
//
// Workers average their weights with both neighbours on a ring in every step and with all at the end: a sound strategy,
// and some with one mistake each.
#include <regatta/algorithms.hpp>
#include <regatta/data_parallel.hpp>

#include <vector>

namespace {

struct sound {
  static constexpr bool steps_of_three = false, up_to_four = false, fixed_pairs = false, says_bound_0 = false,
                        first_bucket_only = false, one_buffer_for_both = false, one_buffer_for_lanes = false,
                        applies_early = false, sends_first = false, refuses_odd = false, on_a_line = false;
};

template <class Mistake> struct gossip : rg::data_parallel<gossip<Mistake>> {
  using base = rg::data_parallel<gossip<Mistake>>;
  using base::comm;

  static rg_plan plan(const rg::data_parallel_parameters& p, const rg_cluster& c) {
    if (Mistake::refuses_odd && c.workers % 2) throw rg::error(RG_E_CONFIG, "cluster.workers must be even");
    rg_plan plan{};
    plan.flags = RG_PLAN_AGREES | (Mistake::fixed_pairs ? 0 : RG_PLAN_BOUNDED);
    plan.lanes = p.lanes;
    // A step ends when both neighbours have computed it: a worker at distance d ends d - 1 steps before another one.
    const std::uint32_t farthest = Mistake::on_a_line ? c.workers - 1 : c.workers / 2;
    if (!Mistake::says_bound_0 && !Mistake::fixed_pairs && c.workers > 1) plan.bound = farthest - 1;
    return plan;
  }

  gossip(rg::comm& c, const rg::data_parallel_parameters& p) : base(c, p) {
    const std::uint32_t n = c.workers(), me = c.rank();
    if (Mistake::fixed_pairs && n % 2 == 0) {
      peers.push_back(me ^ 1);
    } else if (Mistake::on_a_line) {
      if (me > 0) peers.push_back(me - 1);
      if (me + 1 < n) peers.push_back(me + 1);
    } else if (n > 1) {
      peers.push_back((me + n - 1) % n);
      if (n > 2) peers.push_back((me + 1) % n);
    }
    std::uint64_t largest = 0;
    for (const rg::span_of_arena& b : this->buckets()) largest = std::max(largest, b.count);
    for (std::uint32_t i = 0; largest && i < 2 * this->lanes(); ++i) received.push_back(c.alloc(largest));
  }

  rg::task<> update(rg::bucket b) {
    const rg_buffer weights = comm.weights(b.range);
    const std::size_t count = Mistake::first_bucket_only && b.index ? 0 : peers.size();
    rg::operation in[2], out[2];
    for (std::size_t i = 0; i < count && !Mistake::sends_first; ++i) in[i] = comm.recv(peers[i], from(b, i), b.lane);
    for (std::size_t i = 0; i < count; ++i) out[i] = comm.send(peers[i], weights, b.lane);
    for (std::size_t i = 0; i < count && Mistake::sends_first; ++i) {
      rg::operation& sent = out[i];
      co_await sent;
      co_await comm.recv(peers[i], from(b, i), b.lane);
    }
    const std::uint32_t n = comm.workers();
    co_await comm.scale(b.gradients, Mistake::steps_of_three ? 3 : Mistake::up_to_four ? std::min(n, 4U) : n);
    for (std::size_t i = 0; i < count && !Mistake::sends_first; ++i) {
      rg::operation &arrived = in[i], &sent = out[i];
      co_await arrived;
      if (!Mistake::applies_early) co_await sent;
    }
    for (std::size_t i = 0; i < count; ++i) co_await comm.axpy(weights, 1, from(b, i));
    if (count) co_await comm.scale(weights, 1.0 / static_cast<double>(count + 1));
    co_await comm.apply(b.range.first, b.gradients, b.step, rg::role::worker);
    for (std::size_t i = 0; i < count && Mistake::applies_early; ++i) {
      rg::operation& sent = out[i];
      co_await sent;
    }
  }

  rg::task<> finish() {
    const rg_buffer weights = comm.weights(comm.whole());
    co_await rg::ring_all_reduce(comm, this->members(), comm.rank(), weights, 0);
    co_await comm.scale(weights, 1.0 / comm.workers());
  }

private:
  rg_buffer from(const rg::bucket& b, std::size_t i) const {
    const std::size_t lane = Mistake::one_buffer_for_lanes ? 0 : b.lane, side = Mistake::one_buffer_for_both ? 0 : i;
    return rg::sub(received[2 * lane + side], 0, b.range.count);
  }
  std::vector<std::uint32_t> peers;
  std::vector<rg_buffer> received;
};

struct three : sound {
  static constexpr bool steps_of_three = true;
};
struct four_at_most : sound {
  static constexpr bool up_to_four = true;
};
struct pairs : sound {
  static constexpr bool fixed_pairs = true;
};
struct no_bound : sound {
  static constexpr bool says_bound_0 = true;
};
struct first_bucket : sound {
  static constexpr bool first_bucket_only = true;
};
struct one_buffer : sound {
  static constexpr bool one_buffer_for_both = true;
};
struct lanes_share : sound {
  static constexpr bool one_buffer_for_lanes = true;
};
struct early : sound {
  static constexpr bool applies_early = true;
};
struct send_first : sound {
  static constexpr bool sends_first = true;
};
struct by_degree : sound {
  static constexpr bool on_a_line = true;
};
struct even_only : sound {
  static constexpr bool refuses_odd = true;
};

} // namespace

RG_PLUGIN(
    "gossiping", "1.0", rg::strategy<gossip<sound>>("gossips", "nothing wrong: averages weights with two neighbours"),
    rg::strategy<gossip<even_only>>("gossips_if_even", "nothing wrong: refuses an odd number of workers"),
    rg::strategy<gossip<three>>("gossips_times_three", "broken: a factor is right for three workers only"),
    rg::strategy<gossip<four_at_most>>("gossips_up_to_four", "broken: a factor is right for up to four workers"),
    rg::strategy<gossip<pairs>>("gossips_in_fixed_pairs", "broken: four workers are two pairs that never meet"),
    rg::strategy<gossip<no_bound>>("gossips_unbounded", "broken: the bound holds for up to three workers"),
    rg::strategy<gossip<first_bucket>>("gossips_first_bucket", "broken: only the first bucket is exchanged in a step"),
    rg::strategy<gossip<one_buffer>>("gossips_into_one_buffer", "broken: both neighbours' weights go into one buffer"),
    rg::strategy<gossip<lanes_share>>("gossips_across_lanes", "broken: buckets on two lanes share buffers"),
    rg::strategy<gossip<early>>("gossips_before_sent", "broken: changes weights that it is still sending"),
    rg::strategy<gossip<by_degree>>("gossips_by_degree", "broken: workers at the ends of a line have fewer neighbours"),
    rg::strategy<gossip<send_first>>("gossips_send_first", "broken: all workers send before they receive"))
