// SPDX-License-Identifier: Apache-2.0
//
// Synchronous data parallelism by all-reduce: every worker sums the gradients of all workers, bucket by bucket while
// the backward pass still runs, and applies the same update (regatta/data_parallel.hpp). Gradients of sparse tables are
// gathered instead: every worker adds up the rows of all workers (regatta/tables.hpp).
//
// With algorithm = "sharded", each worker sums and updates only its shard of a bucket, and weights are exchanged
// instead of sums (sharded_update.hpp).
//
// algorithm = "auto" follows a rule: the sharded update if shards are large, else the transport's own all-reduce if
// there is one, else the algorithm that a cost model predicts to be the fastest for the bucket (algorithm.hpp). The
// result shows how many buckets of which size each algorithm exchanged ("algorithm_ring", "algorithm_sharded", ...).
#include "algorithm.hpp"
#include "sharded_update.hpp"

#include <regatta/algorithms.hpp>
#include <regatta/data_parallel.hpp>
#include <regatta/tables.hpp>

#include <bit>
#include <set>

namespace {

struct allreduce : rg::data_parallel<allreduce> {
  struct parameters : rg::data_parallel_parameters {
    std::string algorithm = "auto";
    std::string wire = "fp32";
    parameters() { lanes = 4; }
  };
  static constexpr auto fields = std::tuple_cat(
      rg::data_parallel_fields,
      rg::fields(rg::field("algorithm", &parameters::algorithm,
                           "auto: sharded if shards are large, else the transport's own if it has one, else by bucket "
                           "size and number of workers")
                     .one_of("auto", "native", "ring", "halving_doubling", "recursive_doubling", "circulant",
                             "hierarchical", "sharded"),
                 rg::field("wire", &parameters::wire, "wire type of gradients; partial sums are rounded to it, too")
                     .one_of("fp32", "bf16", "fp16")));

  static rg_plan plan(const parameters& p, const rg_cluster& c) {
    if (p.wire != "fp32" && p.algorithm == "sharded")
      throw rg::error(RG_E_CONFIG, "wire: expected \"fp32\" with algorithm = \"sharded\", which sends weights, got \"" +
                                       p.wire + "\": leave out wire, or use algorithm = \"auto\"");
    rg_plan plan{};
    plan.flags = RG_PLAN_SYNCHRONOUS | RG_PLAN_ROWS | RG_PLAN_RESUMES;
    if (p.algorithm == "ring" || (p.algorithm == "circulant" && !share_links(c))) plan.symmetry = RG_SYMMETRY_ROTATION;
    if ((p.algorithm == "halving_doubling" || p.algorithm == "recursive_doubling") && std::has_single_bit(c.workers))
      plan.symmetry = RG_SYMMETRY_XOR;
    // Deferred updates sum norms by halving and doubling.
    if (p.algorithm == "sharded" && !(c.flags & RG_HOST_DEFERRED)) plan.symmetry = RG_SYMMETRY_CLASSES;
    if (p.algorithm == "native") plan.flags |= RG_PLAN_COLLECTIVES;
    if (p.algorithm == "hierarchical") {
      plan.flags |= RG_PLAN_EQUAL_HOSTS;
      plan.symmetry = RG_SYMMETRY_HOSTS;
    }
    plan.lanes = p.lanes + 1; // the last one is for rows of sparse tables
    return plan;
  }

  // Returns whether workers share the link of a host. With circulant each worker copies a bucket in two parts, and no
  // two workers cut it at the same place. So the workers of one host are ready to send at different times, those of
  // another host in another order, and the hosts do not behave alike.
  static bool share_links(const rg_cluster& c) {
    if (!c.host_of) return false;
    const std::set<std::uint32_t> hosts(c.host_of, c.host_of + c.workers);
    return hosts.size() > 1 && hosts.size() < c.workers;
  }

  // Only neighbours and partners are connected where the algorithm has them, so that many ranks need few connections.
  // The rows of sparse tables go from each worker to each other one.
  static bool talks(const parameters& p, const rg_cluster& c, std::uint32_t a, std::uint32_t b) {
    if (c.flags & RG_HOST_TABLES) return true;
    if (p.algorithm == "ring") return rg::ring_neighbours(a, b, c.workers);
    if (p.algorithm == "circulant") return rg::circulant_neighbours(a, b, c.workers);
    if ((p.algorithm == "halving_doubling" || p.algorithm == "recursive_doubling") && std::has_single_bit(c.workers))
      return std::has_single_bit(a ^ b);
    return true;
  }

  allreduce(rg::comm& c, const parameters& p)
      : data_parallel(c, c.make_buckets(p.bucket), p.lanes), wire(rg::wire_type(p.wire)), rows(c, p.lanes) {
    if (!c.is_worker()) return;
    if (c.workers() > 1) {
      groups = rg::group_by_host(c.cluster(), members(), c.rank());
      if (p.algorithm == "sharded" ||
          (p.algorithm == "auto" && !wire && !several_hosts() && sharded_update::pays(c, buckets()))) {
        sharded.emplace(c, buckets(), members());
        if (sharded->is_native()) use_one_lane();
        return;
      }
      choose(p.algorithm);
      if (group) begun = std::vector<rg::event>(buckets().size());
    }
    c.own(c.whole(), rg::role::worker);
  }

  rg::task<> begin_step(std::uint64_t step, rg::step_rows touched) {
    data_parallel::begin_step(step);
    return rows.begin_step(touched);
  }
  rg::task<> pull_rows(rg::step_rows touched) { return rows.pull_rows(touched); }
  rg::task<> update(rg::bucket b) {
    if (sharded)
      co_await sharded->update(b.index, b.step, b.lane);
    else
      co_await data_parallel::update(b);
    if (comm.workers() > 1)
      comm.record_value(record_name(sharded ? algorithm::sharded : chosen[b.index]), bytes_of(b.index));
  }
  rg::task<> exchange(rg::bucket b) {
    if (comm.workers() == 1) co_return;
    switch (chosen[b.index]) {
    case algorithm::native: {
      // All members begin a group's collectives in the same order. Lanes become free in any order.
      if (b.index > 0) {
        rg::event& before = begun[b.index - 1];
        co_await before;
      }
      rg::operation sum = comm.all_reduce(*group, b.gradients, wire);
      begun[b.index].set();
      co_await sum;
      break;
    }
    case algorithm::halving_doubling:
      co_await rg::halving_doubling_all_reduce(comm, members(), comm.rank(), b.gradients, b.lane, wire);
      break;
    case algorithm::recursive_doubling:
      co_await rg::recursive_doubling_all_reduce(comm, members(), comm.rank(), b.gradients, scratch[b.lane], b.lane,
                                                 wire);
      break;
    case algorithm::circulant:
      co_await rg::circulant_all_reduce(comm, members(), comm.rank(), b.gradients, scratch[b.lane], b.lane, wire);
      break;
    case algorithm::hierarchical: co_await rg::hierarchical_all_reduce(comm, *groups, b.gradients, b.lane, wire); break;
    default: co_await rg::ring_all_reduce(comm, members(), comm.rank(), b.gradients, b.lane, wire);
    }
  }
  // With sharded updates each worker has the norm of its shards only; otherwise all workers hold all gradients.
  rg::task<> sum_norms(rg_buffer total) {
    if (sharded) co_await rg::halving_doubling_all_reduce(comm, members(), comm.rank(), total, 0);
  }
  rg::task<> end_step(std::uint64_t step) {
    co_await rows.end_step(step);
    co_await data_parallel::end_step(step);
    for (std::size_t b = 0; sharded && comm.deferred() && b < buckets().size(); ++b)
      co_await sharded->exchange_weights(b, 0);
  }

private:
  std::uint64_t bytes_of(std::size_t bucket) const { return buckets()[bucket].count * sizeof(float); }
  // Whether hosts have several workers each, and the same number of them: then the hierarchical algorithm may be
  // faster.
  bool several_hosts() const { return groups && groups->here.size() > 1; }

  placement where() const {
    const rg_cluster& c = comm.cluster();
    if (several_hosts()) return placement::groups;
    return std::all_of(c.host_of, c.host_of + c.workers, [&](std::uint32_t host) { return host == c.host_of[0]; })
               ? placement::one_host
               : placement::apart;
  }

  // Chooses the algorithm of each bucket for "auto" and for any name but "sharded".
  void choose(const std::string& name) {
    if ((name == "native" || name == "auto") && comm.offers(RG_OP_ALL_REDUCE, RG_SUM, RG_F32, wire))
      group = comm.split(members());
    if (name == "native" && !group)
      throw rg::error(RG_E_CONFIG,
                      std::string("algorithm = \"native\": expected a transport with an all-reduce of its own") +
                          (wire ? " that has this wire type" : "") + ", got one without: use \"ring\" or \"auto\"");
    if (name == "hierarchical" && !groups)
      throw rg::error(RG_E_CONFIG,
                      "algorithm = \"hierarchical\": expected several hosts with equally many workers, got "
                      "other ones: use \"ring\" or \"auto\", or set cluster.hosts = 2 to treat the ranks "
                      "as two hosts");
    std::uint64_t largest = 0; // elements, of the buckets whose algorithm needs scratch memory
    for (std::size_t b = 0; b < buckets().size(); ++b) {
      chosen.push_back(group            ? algorithm::native
                       : name == "auto" ? fastest(bytes_of(b), comm.workers(), where())
                                        : algorithm_named(name));
      if (chosen[b] == algorithm::recursive_doubling || chosen[b] == algorithm::circulant)
        largest = std::max(largest, buckets()[b].count);
    }
    for (std::uint32_t lane = 0; largest && lane < lanes(); ++lane) scratch.push_back(comm.alloc(largest));
  }

  std::uint32_t wire;
  std::optional<rg::host_groups> groups; // if empty, there is one host, or hosts have different numbers of workers
  std::optional<sharded_update> sharded; // if empty, `chosen` is used
  std::vector<algorithm> chosen;         // by bucket
  std::optional<rg::group> group;        // for the transport's own all-reduce
  std::vector<rg::event> begun;          // by bucket: its all-reduce in `group` has begun
  std::vector<rg_buffer> scratch;        // by lane: as large as a bucket, for recursive doubling and circulant
  rg::replicated_tables rows;
};

} // namespace

RG_PLUGIN("allreduce", "0.3.0",
          rg::strategy<allreduce>("allreduce",
                                  "synchronous: every worker sums all gradients and makes the same update"))
