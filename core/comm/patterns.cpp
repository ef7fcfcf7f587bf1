// SPDX-License-Identifier: Apache-2.0
#include "comm/patterns.hpp"

#include <algorithm>
#include <numeric>

#include <regatta/algorithms.hpp>
#include <regatta/ext/collectives.h>
#include <regatta/strategy.hpp>

namespace regatta::comm {
namespace {

constexpr std::uint32_t root = 0; // of a broadcast

struct pattern {
  struct parameters {
    std::string op, algorithm;
    std::vector<std::int64_t> counts;
  };
  static constexpr auto fields =
      rg::fields(rg::field("op", &parameters::op, "what"), rg::field("algorithm", &parameters::algorithm, "how"),
                 rg::field("counts", &parameters::counts, "elements"));

  static rg_plan plan(const parameters&, const rg_cluster&) {
    rg_plan p{};
    p.lanes = 1;
    return p;
  }

  pattern(rg::comm& c, const parameters& p) : comm(c), what(p) {
    members.resize(comm.workers());
    std::iota(members.begin(), members.end(), 0);
    // In this ring every rank comes one position earlier, so that it ends with the chunk that is its own shard.
    for (std::size_t i = 0; i < members.size(); ++i) shifted.push_back(members[(i + 1) % members.size()]);
    if (what.algorithm == "native") group = comm.split(members);
    if (what.algorithm == "recursive_doubling" || what.algorithm == "circulant")
      scratch = comm.alloc(comm.whole().count);
    comm.make_buckets(comm.whole().count * sizeof(float));
    if (what.op != "pair") run = chosen();
  }

  rg::task<> end_step(std::uint64_t step) {
    if (what.op == "pair") return exchange(step >> 32);
    return (this->*run)(comm.gradients({0, static_cast<std::uint64_t>(what.counts.at(step >> 32))}));
  }

  rg::comm& comm;

private:
  using body = rg::task<> (pattern::*)(rg_buffer buffer);

  // Called once: comparing names in every step would take longer than sending a small message.
  body chosen() const {
    const std::string &op = what.op, &algorithm = what.algorithm;
    if (algorithm == "native")
      return op == "allreduce"       ? &pattern::native_all_reduce
             : op == "reducescatter" ? &pattern::native_reduce_scatter
             : op == "allgather"     ? &pattern::native_all_gather
             : op == "alltoall"      ? &pattern::native_all_to_all
                                     : &pattern::native_broadcast;
    if (op == "allreduce")
      return algorithm == "ring"                 ? &pattern::ring
             : algorithm == "recursive_doubling" ? &pattern::recursive_doubling
             : algorithm == "circulant"          ? &pattern::circulant
                                                 : &pattern::halving_doubling;
    if (op == "broadcast") return algorithm == "tree" ? &pattern::tree : &pattern::scatter_gather;
    if (op == "reducescatter") return &pattern::reduce_scatter;
    if (op == "allgather") return &pattern::all_gather;
    if (op == "alltoall") return &pattern::all_to_all;
    if (!takes_part(op, comm.rank(), comm.workers())) return &pattern::idle;
    if (op == "send") return &pattern::there_and_back;
    return comm.rank() + 1 == comm.workers() ? &pattern::serve_pushes : &pattern::push_pull;
  }

  rg::task<> idle(rg_buffer) { co_return; }

  rg::task<> native_all_reduce(rg_buffer buffer) { co_await comm.all_reduce(*group, buffer); }
  rg::task<> native_reduce_scatter(rg_buffer buffer) { co_await comm.reduce_scatter(*group, buffer); }
  rg::task<> native_all_gather(rg_buffer buffer) { co_await comm.all_gather(*group, buffer); }
  rg::task<> native_all_to_all(rg_buffer buffer) {
    co_await comm.collective(RG_OP_ALL_TO_ALL, *group, {.source = divisible(buffer), .target = weights_of(buffer)});
  }
  rg::task<> native_broadcast(rg_buffer buffer) { co_await comm.broadcast(*group, buffer, root); }

  rg::task<> ring(rg_buffer buffer) { return rg::ring_all_reduce(comm, members, comm.rank(), buffer, 0); }
  rg::task<> halving_doubling(rg_buffer buffer) {
    return rg::halving_doubling_all_reduce(comm, members, comm.rank(), buffer, 0);
  }
  rg::task<> recursive_doubling(rg_buffer buffer) {
    return rg::recursive_doubling_all_reduce(comm, members, comm.rank(), buffer, scratch, 0);
  }
  rg::task<> circulant(rg_buffer buffer) {
    return rg::circulant_all_reduce(comm, members, comm.rank(), buffer, scratch, 0);
  }
  rg::task<> reduce_scatter(rg_buffer buffer) { return rg::ring_reduce_scatter(comm, shifted, place(), buffer, 0); }
  rg::task<> all_gather(rg_buffer buffer) { return rg::ring_all_gather(comm, shifted, place(), buffer, 0); }
  rg::task<> all_to_all(rg_buffer buffer) {
    return rg::pairwise_all_to_all(comm, members, comm.rank(), divisible(buffer), weights_of(buffer), 0);
  }
  // For an all-to-all: the elements that can be divided among the ranks, and as many weights.
  rg_buffer divisible(rg_buffer b) const { return rg::sub(b, 0, b.count / members.size() * members.size()); }
  rg_buffer weights_of(rg_buffer b) const { return comm.weights({0, divisible(b).count}); }
  rg::task<> tree(rg_buffer buffer) { return rg::tree_broadcast(comm, members, comm.rank(), root, buffer, 0); }
  rg::task<> scatter_gather(rg_buffer buffer) {
    return rg::scatter_gather_broadcast(comm, members, comm.rank(), root, buffer, 0);
  }
  std::size_t place() const { return (comm.rank() + shifted.size() - 1) % shifted.size(); }

  // One message from one rank of a pair to the other, and its answer of counts[0].
  rg::task<> exchange(std::uint64_t code) {
    const auto peer = static_cast<std::uint32_t>(code >> 2);
    const auto message = static_cast<std::uint64_t>(what.counts.at(code >> 1 & 1));
    const auto answer = static_cast<std::uint64_t>(what.counts.at(0));
    if (code & 1) {
      co_await comm.recv(peer, comm.weights({0, message}));
      co_await comm.send(peer, comm.gradients({0, answer}));
    } else {
      co_await comm.send(peer, comm.gradients({0, message}));
      co_await comm.recv(peer, comm.weights({0, answer}));
    }
  }

  // Sends the gradients of an even rank to the weights of the next rank, and from there back to its own weights.
  rg::task<> there_and_back(rg_buffer from) {
    const rg_buffer to = comm.weights({0, from.count});
    const std::uint32_t peer = comm.rank() ^ 1;
    if (comm.rank() % 2 == 0) {
      co_await comm.send(peer, from);
      co_await comm.recv(peer, to);
    } else {
      co_await comm.recv(peer, to);
      co_await comm.send(peer, to);
    }
  }

  rg::task<> push_pull(rg_buffer buffer) {
    const std::uint32_t server = comm.workers() - 1;
    co_await comm.send(server, buffer);
    co_await comm.recv(server, buffer);
  }
  // Sums the workers' buffers in the order of ranks, and sends the sum to all workers.
  rg::task<> serve_pushes(rg_buffer sum) {
    const std::uint32_t workers = comm.workers() - 1;
    std::vector<rg::operation> under_way;
    for (std::uint32_t w = 0; w < workers; ++w) under_way.push_back(w == 0 ? comm.recv(w, sum) : comm.recv_add(w, sum));
    for (rg::operation& o : under_way) co_await o;
    under_way.clear();
    for (std::uint32_t w = 0; w < workers; ++w) under_way.push_back(comm.send(w, sum));
    for (rg::operation& o : under_way) co_await o;
  }

  parameters what;
  std::vector<std::uint32_t> members, shifted;
  std::optional<rg::group> group; // for the transport's collectives
  rg_buffer scratch{};
  body run = nullptr;
};

float value(std::uint32_t rank, std::size_t i) {
  return static_cast<float>((i * 7 + rank * 13 + 1) % 31);
}

} // namespace

const rg_strategy& pattern_strategy() {
  return *rg::detail::strategy_functions<pattern>::table();
}

std::vector<std::string> algorithms_of(const std::string& op) {
  if (op == "allreduce") return {"native", "ring", "halving_doubling", "recursive_doubling", "circulant"};
  if (op == "reducescatter" || op == "allgather") return {"native", "ring"};
  if (op == "alltoall") return {"native", "pairwise"};
  if (op == "broadcast") return {"native", "tree", "scatter_gather"};
  return {};
}

bool has_native(const rg_collectives& c, void* transport, const std::string& op) {
  const bool sums = op == "allreduce" || op == "reducescatter";
  const rg_op_kind kind = op == "allreduce"       ? RG_OP_ALL_REDUCE
                          : op == "reducescatter" ? RG_OP_REDUCE_SCATTER
                          : op == "allgather"     ? RG_OP_ALL_GATHER
                          : op == "alltoall"      ? RG_OP_ALL_TO_ALL
                                                  : RG_OP_BROADCAST;
  return c.offers(transport, kind, sums ? std::uint32_t{RG_SUM} : 0, RG_F32, 0);
}

bool takes_part(const std::string& op, std::uint32_t r, std::uint32_t ranks) {
  return op != "send" || (r ^ 1) < ranks;
}

double bus_factor(const std::string& op, std::uint32_t ranks) {
  if (op == "allreduce") return 2.0 * (ranks - 1) / ranks;
  if (op == "reducescatter" || op == "allgather" || op == "alltoall") return 1.0 * (ranks - 1) / ranks;
  return op == "push_pull" ? 2 : 1;
}

void fill(std::uint32_t rank, std::span<float> weights, std::span<float> gradients) {
  std::fill(weights.begin(), weights.end(), -1.0F);
  for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] = value(rank, i);
}

std::uint64_t count_wrong(const std::string& op, std::uint32_t rank, std::uint32_t ranks,
                          std::span<const float> weights, std::span<const float> gradients) {
  if (!takes_part(op, rank, ranks)) return 0;
  const auto share = [&](std::uint32_t of) { return rg::part_of({0, gradients.size()}, of, ranks); };
  std::uint64_t wrong = 0;
  if (op == "allgather") {
    for (std::uint32_t r = 0; r < ranks; ++r)
      for (std::uint64_t i = share(r).first; i < share(r).end(); ++i) wrong += gradients[i] != value(r, i);
    return wrong;
  }
  if (op == "alltoall") {
    const std::uint64_t part = gradients.size() / ranks;
    for (std::uint32_t r = 0; r < ranks; ++r)
      for (std::uint64_t i = 0; i < part; ++i) wrong += weights[r * part + i] != value(r, rank * part + i);
    return wrong;
  }
  const auto checked = op == "reducescatter" ? share(rank) : rg::span_of_arena{0, gradients.size()};
  const std::uint32_t summands = op == "push_pull" ? ranks - 1 : ranks;
  for (std::uint64_t i = checked.first; i < checked.end(); ++i) {
    if (op == "send") {
      wrong += weights[i] != value(rank & ~1U, i);
    } else if (op == "broadcast") {
      wrong += gradients[i] != value(root, i);
    } else {
      float sum = 0;
      for (std::uint32_t r = 0; r < summands; ++r) sum += value(r, i);
      wrong += gradients[i] != sum;
    }
  }
  return wrong;
}

} // namespace regatta::comm
