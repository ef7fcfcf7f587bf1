// SPDX-License-Identifier: Apache-2.0
//
// All-reduce, reduce-scatter, all-gather and broadcast over send and recv, each as one coroutine that all members run.
// docs/algorithms.md has their steps and bytes. `members` are the participating ranks, one or more, the same list on
// all of them; this rank has index `me`. The list, and `comm`, must be valid until the coroutine ends. A buffer that is
// reduced is RG_F32 (without a wire type also RG_F64, except in recursive_doubling_all_reduce()); it holds this rank's
// summand, and at the end the sum. The sum is equal to the bit on every member: each element is summed on one rank and
// copied from there, or by the same tree on all ranks. All messages use `lane`; no other messages between the members
// may be on it meanwhile. The coroutines throw rg::error if a transfer fails.
#pragma once

#include <regatta/strategy.hpp>

#include <bit>
#include <optional>
#include <span>
#include <vector>

namespace rg {

// For a strategy's talks(): returns whether ranks a and b are neighbours in a ring of the ranks 0 to n - 1.
inline bool ring_neighbours(std::uint32_t a, std::uint32_t b, std::uint32_t n) {
  const std::uint32_t apart = a > b ? a - b : b - a;
  return apart == 1 || apart + 1 == n;
}
// Returns chunk i mod n of the buffer, cut into n chunks as part_of() does.
inline rg_buffer ring_chunk(rg_buffer buffer, std::size_t i, std::size_t n) {
  const auto part = part_of({0, buffer.count}, i % n, n);
  return sub(buffer, part.first, part.count);
}
// Ring reduce-scatter and all-gather (Patarasuk and Yuan, Bandwidth optimal all-reduce, 2009): n - 1 steps each, in
// which a rank sends 1/n of the buffer to its right neighbour. After the reduce-scatter, the rank with index i holds
// the sum of chunk (i + 1) mod n, and the rest of its buffer is undefined. The all-gather begins with chunk (i + 1) mod
// n on the rank with index i; after it all ranks hold all chunks. `wire` is the wire type of comm::send; in the
// all-gather the rank that holds a chunk rounds it to that type, so that its copy equals those of the receivers.
inline task<> ring_reduce_scatter(comm& comm, std::span<const std::uint32_t> members, std::size_t me, rg_buffer buffer,
                                  std::uint32_t lane, std::uint32_t wire = 0) {
  const std::size_t n = members.size();
  const std::uint32_t right = members[(me + 1) % n], left = members[(me + n - 1) % n];
  // Chunk c starts at rank c and gathers a summand at every stop.
  for (std::size_t s = 0; s + 1 < n; ++s) {
    auto in = comm.recv_add(left, ring_chunk(buffer, me + 2 * n - s - 1, n), lane, wire);
    auto out = comm.send(right, ring_chunk(buffer, me + n - s, n), lane, wire);
    co_await in;
    co_await out;
  }
}
inline task<> ring_all_gather(comm& comm, std::span<const std::uint32_t> members, std::size_t me, rg_buffer buffer,
                              std::uint32_t lane, std::uint32_t wire = 0) {
  const std::size_t n = members.size();
  const std::uint32_t right = members[(me + 1) % n], left = members[(me + n - 1) % n];
  co_await comm.round(ring_chunk(buffer, me + 1, n), wire);
  for (std::size_t s = 0; s + 1 < n; ++s) {
    auto in = comm.recv(left, ring_chunk(buffer, me + n - s, n), lane, wire);
    auto out = comm.send(right, ring_chunk(buffer, me + n - s + 1, n), lane, wire);
    co_await in;
    co_await out;
  }
}

// All-reduce as ring reduce-scatter, then ring all-gather: 2(n-1) steps and the least bytes. For large buffers.
inline task<> ring_all_reduce(comm& comm, std::span<const std::uint32_t> members, std::size_t me, rg_buffer buffer,
                              std::uint32_t lane, std::uint32_t wire = 0) {
  co_await ring_reduce_scatter(comm, members, me, buffer, lane, wire);
  co_await ring_all_gather(comm, members, me, buffer, lane, wire);
}

// The ranks of this rank's host and of other hosts, for a hierarchical all-reduce.
struct host_groups {
  std::vector<std::uint32_t> here;              // members on this rank's host
  std::vector<std::uint32_t> across;            // for each host, the member with the same local index as this rank
  std::size_t index_here = 0, index_across = 0; // this rank's index in `here` and in `across`
};
// Groups `members` by host, for the rank members[me]. Returns nothing if the hosts have different numbers of members,
// or if there is one host only.
inline std::optional<host_groups> group_by_host(const rg_cluster& c, std::span<const std::uint32_t> members,
                                                std::size_t me) {
  std::vector<std::uint32_t> hosts;
  std::vector<std::vector<std::uint32_t>> by_host;
  for (const std::uint32_t m : members) {
    const auto at = static_cast<std::size_t>(std::find(hosts.begin(), hosts.end(), c.host_of[m]) - hosts.begin());
    if (at == hosts.size()) {
      hosts.push_back(c.host_of[m]);
      by_host.emplace_back();
    }
    by_host[at].push_back(m);
  }
  host_groups g;
  for (std::size_t h = 0; h < by_host.size(); ++h) {
    if (by_host[h].size() != by_host[0].size()) return std::nullopt;
    const auto self = std::find(by_host[h].begin(), by_host[h].end(), members[me]);
    if (self == by_host[h].end()) continue;
    g.index_across = h;
    g.index_here = static_cast<std::size_t>(self - by_host[h].begin());
    g.here = by_host[h];
  }
  if (by_host.size() < 2) return std::nullopt;
  for (const auto& on : by_host) g.across.push_back(on[g.index_here]);
  return g;
}

// Hierarchical all-reduce (as Mikami et al., Massively distributed SGD, 2018, section 3.3, on a 2D torus):
// reduce-scatter among the m ranks of a host; all-reduce of each 1/m with the ranks that have the same local index on
// the other h - 1 hosts; all-gather inside the host. 2(m-1) steps inside and 2(h-1) between hosts; between hosts a rank
// sends 2(h-1)/h of 1/m of the buffer. `g` is from group_by_host() on every member, and must be valid until the end.
inline task<> hierarchical_all_reduce(comm& comm, const host_groups& g, rg_buffer buffer, std::uint32_t lane,
                                      std::uint32_t wire = 0) {
  co_await ring_reduce_scatter(comm, g.here, g.index_here, buffer, lane, wire);
  co_await ring_all_reduce(comm, g.across, g.index_across, ring_chunk(buffer, g.index_here + 1, g.here.size()), lane,
                           wire);
  co_await ring_all_gather(comm, g.here, g.index_here, buffer, lane, wire);
}

// The corners of a hypercube, for algorithms that pair ranks at distances 1, 2, 4, ... If n is no power of two, with
// 2^k < n < 2^(k+1), the first 2(n - 2^k) ranks form pairs: the one with even index gives its data to the other one,
// which takes part for both. `members` must be valid as long as the object.
class hypercube {
public:
  hypercube(std::span<const std::uint32_t> members, std::size_t me)
      : members_(members), size_(std::bit_floor(members.size())), extra_(members.size() - size_), me_(me) {}

  std::size_t size() const { return size_; }
  // Returns this rank's corner. Not for a rank that joins().
  std::size_t self() const { return me_ < 2 * extra_ ? me_ / 2 : me_ - extra_; }
  // Returns the rank at corner 0 .. size() - 1.
  std::uint32_t rank_of(std::size_t corner) const {
    return members_[corner < extra_ ? 2 * corner + 1 : corner + extra_];
  }
  // joins(): this rank gives its data to the other rank of its pair. is_joined(): it takes part for both.
  bool joins() const { return me_ < 2 * extra_ && me_ % 2 == 0; }
  bool is_joined() const { return me_ < 2 * extra_ && me_ % 2 == 1; }
  // Returns the other rank of the pair. Requires joins() or is_joined().
  std::uint32_t other() const { return members_[me_ ^ 1]; }

private:
  std::span<const std::uint32_t> members_;
  std::size_t size_, extra_, me_;
};

// All-reduce by recursive doubling (Thakur et al., 2005, section 4.5): log2(n) steps, in which partners at distances 1,
// 2, 4, ... exchange the whole buffer and add; if n is no power of two, log2(n) rounded down, and two steps more. The
// least steps: for small buffers, and for two ranks, where it sends as many bytes as the ring. `scratch`: a buffer of
// its own, at least as large, of the same type. Every member computes the sums itself, by the same tree; a + b equals
// b + a to the bit (except for the payload of a NaN).
inline task<> recursive_doubling_all_reduce(comm& comm, std::span<const std::uint32_t> members, std::size_t me,
                                            rg_buffer buffer, rg_buffer scratch, std::uint32_t lane,
                                            std::uint32_t wire = 0) {
  const hypercube cube(members, me);
  if (cube.joins()) {
    co_await comm.send(cube.other(), buffer, lane, wire);
    co_await comm.recv(cube.other(), buffer, lane, wire);
    co_return;
  }
  if (cube.is_joined()) co_await comm.recv_add(cube.other(), buffer, lane, wire);
  const rg_buffer theirs = sub(scratch, 0, buffer.count);
  for (std::size_t d = 1; d < cube.size(); d *= 2) {
    const std::uint32_t partner = cube.rank_of(cube.self() ^ d);
    co_await comm.round(buffer, wire); // this rank must add the values that its partner receives
    auto in = comm.recv(partner, theirs, lane, wire);
    auto out = comm.send(partner, buffer, lane, wire);
    co_await in;
    co_await out;
    co_await comm.axpy(buffer, 1, theirs);
  }
  co_await comm.round(buffer, wire);
  if (cube.is_joined()) co_await comm.send(cube.other(), buffer, lane, wire);
}

// All-reduce by recursive halving, then doubling (Rabenseifner, Optimization of collective reduction operations, 2004;
// Thakur et al., 2005, section 4.5). If n is a power of two: 2 log2(n) steps and as many bytes as the ring. For buffers
// of medium size.
inline task<> halving_doubling_all_reduce(comm& comm, std::span<const std::uint32_t> members, std::size_t me,
                                          rg_buffer buffer, std::uint32_t lane, std::uint32_t wire = 0) {
  const hypercube cube(members, me);
  if (cube.joins()) {
    co_await comm.send(cube.other(), buffer, lane, wire);
    co_await comm.recv(cube.other(), buffer, lane, wire);
    co_return;
  }
  if (cube.is_joined()) co_await comm.recv_add(cube.other(), buffer, lane, wire);

  // Halving: with a partner at distance d, keep one half of the remaining parts and send the other. The parts are
  // numbered [low, high) of cube.size().
  std::size_t low = 0, high = cube.size();
  auto parts = [&](std::size_t from, std::size_t to) {
    const auto a = part_of({0, buffer.count}, from, cube.size());
    const std::uint64_t end = to == from ? a.first : part_of({0, buffer.count}, to - 1, cube.size()).end();
    return sub(buffer, a.first, end - a.first);
  };
  for (std::size_t d = cube.size() / 2; d > 0; d /= 2) {
    const std::size_t middle = low + d;
    const bool lower = cube.self() < middle;
    const std::uint32_t partner = cube.rank_of(cube.self() ^ d);
    auto in = comm.recv_add(partner, lower ? parts(low, middle) : parts(middle, high), lane, wire);
    auto out = comm.send(partner, lower ? parts(middle, high) : parts(low, middle), lane, wire);
    co_await in;
    co_await out;
    (lower ? high : low) = middle;
  }
  co_await comm.round(parts(low, high), wire);
  // Doubling: with the same partners in reverse order, send all parts that this rank holds.
  for (std::size_t d = 1; d < cube.size(); d *= 2) {
    const std::uint32_t partner = cube.rank_of(cube.self() ^ d);
    const bool lower = (cube.self() & d) == 0;
    auto in = comm.recv(partner, lower ? parts(high, high + d) : parts(low - d, low), lane, wire);
    auto out = comm.send(partner, parts(low, high), lane, wire);
    co_await in;
    co_await out;
    if (lower)
      high += d;
    else
      low -= d;
  }
  if (cube.is_joined()) co_await comm.send(cube.other(), buffer, lane, wire);
}

// Skips of circulant_all_reduce(): n halved `times` times, rounded up. For n = 12: 12, 6, 3, 2, 1. The last one is number
// circulant_rounds(n) = ceil(log2 n).
constexpr std::size_t circulant_skip(std::size_t n, int times) {
  return ((n - 1) >> times) + 1;
}
constexpr int circulant_rounds(std::size_t n) {
  return static_cast<int>(std::bit_width(n - 1));
}
// For a strategy's talks(): returns whether ranks a and b, of the ranks 0 to n - 1, exchange messages in
// circulant_all_reduce().
inline bool circulant_neighbours(std::uint32_t a, std::uint32_t b, std::uint32_t n) {
  const std::size_t apart = a > b ? a - b : b - a;
  for (int k = 1; k <= circulant_rounds(n); ++k)
    if (apart == circulant_skip(n, k) || apart + circulant_skip(n, k) == n) return true;
  return false;
}

// All-reduce over a circulant graph (Träff, Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms, 2024,
// arXiv:2410.14234): 2 ceil(log2 n) steps and as many bytes as the ring, for every n. For buffers of medium size if n is
// no power of two. In each step a rank sends to the rank that is one skip away, so all ranks do the same relative to
// their index. `scratch`: a buffer of its own, at least as large, of the same type. It holds a copy of the buffer that
// begins with this rank's chunk, so that the chunks of each message are adjacent.
inline task<> circulant_all_reduce(comm& comm, std::span<const std::uint32_t> members, std::size_t me, rg_buffer buffer,
                                   rg_buffer scratch, std::uint32_t lane, std::uint32_t wire = 0) {
  const std::size_t n = members.size();
  const auto first_of = [&](std::size_t chunk) { return part_of({0, buffer.count}, chunk, n).first; };
  const std::uint64_t before = first_of(me); // elements in front of this rank's chunk
  const std::uint64_t rest = buffer.count - before;
  // Returns chunks [from, end) of the copy. Chunk i of the copy is chunk (me + i) mod n of the buffer.
  const auto chunks = [&](std::size_t from, std::size_t end) {
    const auto begin_of = [&](std::size_t i) {
      return me + i < n ? first_of(me + i) - before : first_of(me + i - n) + rest;
    };
    return sub(scratch, begin_of(from), begin_of(end) - begin_of(from));
  };
  const auto rank_at = [&](std::size_t distance) { return members[(me + distance) % n]; };

  // Both copies are submitted at once. A rank's operations take turns, so together they take as long on every rank,
  // although the buffer is divided elsewhere on each.
  auto to_front = comm.copy(sub(scratch, 0, rest), sub(buffer, before, rest));
  auto to_back = comm.copy(sub(scratch, rest, before), sub(buffer, 0, before));
  co_await to_front;
  co_await to_back;
  // Reduce-scatter. The chunks from `skip` on, of those that this rank still sums, are the first ones of the receiver.
  for (int k = 0; k < circulant_rounds(n); ++k) {
    const std::size_t held = circulant_skip(n, k), skip = circulant_skip(n, k + 1);
    auto in = comm.recv_add(rank_at(n - skip), chunks(0, held - skip), lane, wire);
    auto out = comm.send(rank_at(skip), chunks(skip, held), lane, wire);
    co_await in;
    co_await out;
  }
  co_await comm.round(chunks(0, 1), wire);
  // All-gather: the same in reverse order and in the opposite direction, with finished chunks.
  for (int k = circulant_rounds(n); k-- > 0;) {
    const std::size_t held = circulant_skip(n, k), skip = circulant_skip(n, k + 1);
    auto in = comm.recv(rank_at(skip), chunks(skip, held), lane, wire);
    auto out = comm.send(rank_at(n - skip), chunks(0, held - skip), lane, wire);
    co_await in;
    co_await out;
  }
  auto from_front = comm.copy(sub(buffer, before, rest), sub(scratch, 0, rest));
  auto from_back = comm.copy(sub(buffer, 0, before), sub(scratch, rest, before));
  co_await from_front;
  co_await from_back;
}

// Broadcast of the buffer of members[root] down a binomial tree (as Thakur et al., section 4.3): ceil(log2 n) steps, in
// each of which every rank that has the buffer sends it to one that does not. For small buffers, and for two ranks.
// With a wire type, the root rounds its own buffer too.
inline task<> tree_broadcast(comm& comm, std::span<const std::uint32_t> members, std::size_t me, std::size_t root,
                             rg_buffer buffer, std::uint32_t lane, std::uint32_t wire = 0) {
  const std::size_t n = members.size(), self = (me + n - root) % n; // the root is number 0
  auto rank_of = [&](std::size_t number) { return members[(number + root) % n]; };
  // Number 6 (110) receives from 4 (100), its number without the lowest bit, and sends to 7 (111), at lesser distances.
  std::size_t distance = self ? self & (~self + 1) : std::bit_ceil(n);
  if (self)
    co_await comm.recv(rank_of(self - distance), buffer, lane, wire);
  else
    co_await comm.round(buffer, wire);
  while (distance /= 2)
    if (self + distance < n) co_await comm.send(rank_of(self + distance), buffer, lane, wire);
}

// Broadcast by scatter and all-gather (van de Geijn; Thakur et al., section 4.3): the root sends each member its chunk,
// one after the other, and the ring all-gather follows. n steps, of which the scatter counts as one, as its messages do
// not depend on each other; no rank sends more than twice the buffer. For large buffers.
inline task<> scatter_gather_broadcast(comm& comm, std::span<const std::uint32_t> members, std::size_t me,
                                       std::size_t root, rg_buffer buffer, std::uint32_t lane, std::uint32_t wire = 0) {
  const std::size_t n = members.size();
  // ring_all_gather() requires that member i holds chunk i + 1.
  for (std::size_t i = 0; me == root && i < n; ++i)
    if (i != root) co_await comm.send(members[i], ring_chunk(buffer, i + 1, n), lane, wire);
  if (me != root) co_await comm.recv(members[root], ring_chunk(buffer, me + 1, n), lane, wire);
  co_await ring_all_gather(comm, members, me, buffer, lane, wire);
}

// All-to-all by pairwise exchange (Thakur et al., section 4.4): n - 1 steps; in step d, members[k] sends to
// members[(k + d) mod n] and receives from members[(k - d) mod n]. Source and target do not overlap and have the same
// count, a multiple of n: chunk k of the source is for members[k], and chunk k of the target is from it.
inline task<> pairwise_all_to_all(comm& comm, std::span<const std::uint32_t> members, std::size_t me, rg_buffer source,
                                  rg_buffer target, std::uint32_t lane) {
  const std::size_t n = members.size();
  const auto part = [n](rg_buffer b, std::size_t k) {
    const chunk c = equal_chunk(b.count, k, n);
    return sub(b, c.first, c.count);
  };
  auto own = comm.copy(part(target, me), part(source, me));
  for (std::size_t d = 1; d < n; ++d) {
    const std::size_t to = (me + d) % n, from = (me + n - d) % n;
    auto in = comm.recv(members[from], part(target, from), lane);
    auto out = comm.send(members[to], part(source, to), lane);
    co_await in;
    co_await out;
  }
  co_await own;
}

} // namespace rg
