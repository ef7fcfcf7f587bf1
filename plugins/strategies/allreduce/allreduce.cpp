// SPDX-License-Identifier: Apache-2.0
//
// Synchronous data parallelism by all-reduce: every worker sums the gradients of all workers, bucket by bucket while
// the backward pass still runs, and applies the same update. Buckets take turns on a few lanes. A lane carries one
// bucket at a time, so that sends and receives match in order, and the latency of one lane overlaps with the bytes of
// another. Gradients of sparse tables are gathered instead: every worker adds up the rows of all workers
// (regatta/tables.hpp).
//
// With algorithm = "sharded", each worker sums and updates only its shard of a bucket, and weights are exchanged
// instead of sums (shares.hpp). algorithm = "auto" uses it if shards are large.
//
// Otherwise "auto" uses the transport's own all-reduce if there is one, or else the algorithm that was fastest in the
// first steps or in an earlier run (choice.hpp). The result shows the algorithms that ran ("ring", "halving_doubling",
// "recursive_doubling", "hierarchical", "sharded": how often, and with how many bytes), and whether they were measured
// in this run ("picks_measured", "picks_from_cache").
#include "choice.hpp"
#include "shares.hpp"

#include <regatta/algorithms.hpp>
#include <regatta/tables.hpp>

#include <numeric>
#include <set>

namespace {

constexpr const char* version = "0.2.0";

constexpr std::uint64_t most_doubled = 1 << 20; // bytes; above, recursive doubling was slower in every measurement

struct allreduce {
  struct parameters {
    std::int64_t bucket = 4 << 20;
    std::int64_t lanes = 4;
    std::string algorithm = "auto";
    std::string wire = "fp32";
    std::string shares = "auto";
  };
  static constexpr auto fields = rg::fields(
      rg::field("bucket", &parameters::bucket, "bytes of gradients exchanged at once")
          .unit(RG_UNIT_BYTES)
          .range(64, 1e10),
      rg::field("lanes", &parameters::lanes, "buckets under way at once").range(1, 8),
      rg::field("algorithm", &parameters::algorithm,
                "auto: sharded where shares are large, else the transport's own where it has one, else what "
                "is fastest in the first steps, or was before")
          .one_of("auto", "native", "ring", "halving_doubling", "recursive_doubling", "hierarchical", "sharded"),
      rg::field("wire", &parameters::wire, "what gradients are sent as; sums are rounded to it on the way")
          .one_of("fp32", "bf16", "fp16"),
      rg::field("shares", &parameters::shares,
                "sharded: how shares travel; auto: on devices by the transport's own reduce-scatter and "
                "all-gather where it has them, in the host's memory by messages")
          .one_of("auto", "messages", "native"));

  static rg_plan plan(const parameters& p, const rg_cluster&) {
    if (p.algorithm == "sharded" && p.wire != "fp32")
      throw rg::error(RG_E_CONFIG, "algorithm = \"sharded\" sends weights, and those as fp32: leave out wire, or use "
                                   "\"ring\" or \"auto\"");
    rg_plan plan{};
    plan.flags = RG_PLAN_SYNCHRONOUS | RG_PLAN_ROWS;
    if (p.algorithm == "native" && p.wire != "fp32")
      throw rg::error(RG_E_CONFIG, "algorithm = \"native\" sends fp32: use \"ring\" or \"auto\" with wire");
    const bool native_shares = p.shares == "native" && (p.algorithm == "auto" || p.algorithm == "sharded");
    if (p.algorithm == "native" || native_shares) plan.flags |= RG_PLAN_COLLECTIVES;
    if (p.algorithm == "hierarchical") plan.flags |= RG_PLAN_EQUAL_HOSTS;
    plan.lanes = static_cast<std::uint32_t>(p.lanes) + 1; // the last one is for rows of sparse tables
    return plan;
  }

  allreduce(rg::comm& c, const parameters& p)
      : comm(c), buckets(c.make_buckets(static_cast<std::uint64_t>(p.bucket))), ready(buckets.size()),
        lanes(std::min<std::size_t>(static_cast<std::size_t>(p.lanes), buckets.size())), algorithm(p.algorithm),
        wire(rg::wire_type(p.wire)), members(c.workers()), total(c.alloc(2, RG_F64)),
        rows(c, static_cast<std::uint32_t>(p.lanes)) {
    std::iota(members.begin(), members.end(), 0u);
    if (!c.is_worker()) return;
    const bool alone = members.size() == 1;
    if (algorithm == "sharded" && c.deferred() && c.tables())
      throw rg::error(RG_E_CONFIG, "algorithm = \"sharded\" cannot clip by the norm of a model with sparse tables: use "
                                   "\"ring\" or \"auto\"");
    if (algorithm == "auto" || algorithm == "hierarchical") groups = rg::group_by_host(c.cluster(), members, me());
    if (!alone && (algorithm == "sharded" || (algorithm == "auto" && sharding_pays()))) {
      const bool on_device = !on_host(), asked = p.shares == "native";
      sharded.emplace(c, buckets, members, me(), asked || (p.shares == "auto" && on_device), on_device);
      if (sharded->is_native() && on_device) lanes = 1;
      if (!sharded->is_native() && asked)
        throw rg::error(RG_E_CONFIG, "shares = \"native\": this transport has no reduce-scatter and all-gather of its "
                                     "own; use \"messages\" or \"auto\"");
      return;
    }
    c.own_as_worker(c.whole());
    // The transport's own all-reduce adds in fp32.
    if (!alone && !wire && (algorithm == "auto" || algorithm == "native") && c.offers(RG_OP_ALL_REDUCE))
      native = c.split(members);
    if (algorithm == "native" && !alone && !native)
      throw rg::error(RG_E_CONFIG, wire ? "algorithm = \"native\" sends fp32: use \"ring\" or \"auto\" with wire"
                                        : "algorithm = \"native\": this transport has no collectives; use \"ring\" or "
                                          "\"auto\"");
    const bool small = largest_bucket() * sizeof(float) <= most_doubled;
    if (algorithm == "auto" && !alone && !native) {
      std::vector<way> candidates = {way::ring, way::halving_doubling};
      if (small) candidates.push_back(way::recursive_doubling);
      if (groups) candidates.push_back(way::hierarchical);
      chosen.emplace(c, buckets, candidates, members, me(), setting_of(p));
    }
    fixed = algorithm == "hierarchical"         ? way::hierarchical
            : algorithm == "halving_doubling"   ? way::halving_doubling
            : algorithm == "recursive_doubling" ? way::recursive_doubling
                                                : way::ring;
    if (!alone && (fixed == way::recursive_doubling || (chosen && small)))
      for (std::size_t lane = 0; lane < lanes; ++lane) scratch.push_back(c.alloc(largest_bucket()));
    if (algorithm == "hierarchical" && !alone && !groups)
      throw rg::error(RG_E_CONFIG, "algorithm = \"hierarchical\" needs several hosts with equally many workers; "
                                   "cluster.hosts = 2 pretends that there are two");
  }

  rg::task<> begin_step(std::uint64_t step, rg::step_rows touched) {
    if (chosen && step == 0) co_await choice::recall(*chosen);
    for (std::size_t lane = 0; lane < lanes; ++lane) running.spawn(run_lane(*this, step, lane));
    co_await rows.begin_step(touched);
  }
  rg::task<> pull_rows(rg::step_rows touched) { return rows.pull_rows(touched); }
  void on_gradient(std::uint64_t, std::uint32_t bucket) { ready[bucket].set(); }

  rg::task<> end_step(std::uint64_t step) {
    co_await rows.end_step(step);
    co_await running.join();
    if (chosen) co_await choice::conclude(*chosen, step);
    if (!comm.deferred()) co_return;
    // With sharded updates each worker has the norm of its shards only; otherwise all workers hold all gradients.
    co_await comm.norm(total, false);
    if (sharded) co_await rg::halving_doubling_all_reduce(comm, members, me(), total, 0);
    co_await comm.commit(total, step, false);
    for (std::size_t b = 0; sharded && b < buckets.size(); ++b) co_await shares::hand_out(*sharded, b, 0);
  }

private:
  std::size_t me() const { return static_cast<std::size_t>(comm.cluster().worker); } // index in members

  static rg::task<> run_lane(allreduce& self, std::uint64_t step, std::size_t lane) {
    for (std::size_t b = lane; b < self.buckets.size(); b += self.lanes) {
      rg::event& ready = self.ready[b];
      co_await ready;
      if (self.sharded) {
        co_await shares::update(*self.sharded, b, step, static_cast<std::uint32_t>(lane));
        self.comm.record_value("sharded", static_cast<std::int64_t>(self.buckets[b].count * sizeof(float)));
      } else {
        co_await update(self, b, step, static_cast<std::uint32_t>(lane));
      }
    }
  }

  std::uint64_t largest_bucket() const { // elements
    std::uint64_t most = 0;
    for (const rg::span_of_arena& b : buckets) most = std::max(most, b.count);
    return most;
  }

  // Describes all else that times depend on, besides the transport and the size.
  std::string setting_of(const parameters& p) const {
    const auto& host_of = comm.cluster().host_of;
    const auto hosts = std::set<std::uint32_t>(host_of, host_of + comm.cluster().size).size();
    return std::string("allreduce ") + version + ", " + std::to_string(members.size()) + " workers, " +
           std::to_string(hosts) + (groups ? " hosts with as many each, wire " : " hosts, wire ") + p.wire + ", " +
           std::to_string(lanes) + " lanes";
  }

  // Whether weights are in host memory: neither on a device nor ghosts.
  bool on_host() const { return comm.pointer<float>(comm.weights(comm.whole())); }

  // Sharding pays if updating a shard takes longer than the latency of the messages. It requires host memory, whose
  // bandwidth bounds updates, and fp32 on the wire, because weights must not be rounded. It is not used where the
  // hierarchical algorithm may be faster, nor for deferred updates of a model with sparse tables.
  bool sharding_pays() const {
    constexpr std::uint64_t large = (256 << 10) / sizeof(float);
    return !buckets.empty() && buckets[0].count / members.size() >= large && on_host() && !wire &&
           !(groups && groups->here.size() > 1) && !(comm.deferred() && comm.tables());
  }

  static rg::task<> update(allreduce& self, std::size_t b, std::uint64_t step, std::uint32_t lane) {
    co_await reduce(self, b, step, lane);
    co_await self.comm.apply_as_worker(self.buckets[b].first, self.comm.gradients(self.buckets[b]), step);
  }

  static rg::task<> reduce(allreduce& self, std::size_t b, std::uint64_t step, std::uint32_t lane) {
    if (self.members.size() == 1) co_return;
    const rg_buffer gradient = self.comm.gradients(self.buckets[b]);
    if (self.native) {
      co_await self.comm.all_reduce(*self.native, gradient);
      co_return;
    }
    const way how = self.chosen ? self.chosen->of(b, step) : self.fixed;
    const std::uint64_t begin = self.comm.now();
    co_await reduce_by(self, how, gradient, lane);
    self.comm.record_value(name_of(how), static_cast<std::int64_t>(gradient.count * sizeof(float)));
    if (self.chosen) self.chosen->took(b, step, self.comm.now() - begin);
  }

  static rg::task<> reduce_by(allreduce& self, way how, rg_buffer gradient, std::uint32_t lane) {
    switch (how) {
    case way::ring: co_await rg::ring_all_reduce(self.comm, self.members, self.me(), gradient, lane, self.wire); break;
    case way::halving_doubling:
      co_await rg::halving_doubling_all_reduce(self.comm, self.members, self.me(), gradient, lane, self.wire);
      break;
    case way::recursive_doubling:
      co_await rg::recursive_doubling_all_reduce(self.comm, self.members, self.me(), gradient, self.scratch[lane], lane,
                                                 self.wire);
      break;
    case way::hierarchical:
      co_await rg::hierarchical_all_reduce(self.comm, *self.groups, gradient, lane, self.wire);
      break;
    }
  }

public:
  rg::comm& comm;

private:
  std::vector<rg::span_of_arena> buckets;
  std::vector<rg::event> ready;
  std::size_t lanes;
  std::string algorithm;
  std::uint32_t wire;
  std::vector<std::uint32_t> members;
  rg_buffer total;
  std::optional<rg::host_groups> groups;
  way fixed = way::ring;
  std::optional<choice> chosen;   // if empty, `fixed` is used
  std::vector<rg_buffer> scratch; // by lane: as large as a bucket, for recursive doubling
  std::optional<std::uint32_t> native;
  std::optional<shares> sharded;
  rg::replicated_tables rows;
  rg::task_group running;
};

} // namespace

RG_PLUGIN("allreduce", version,
          rg::strategy<allreduce>("allreduce",
                                  "synchronous: every worker sums all gradients and makes the same update"))
