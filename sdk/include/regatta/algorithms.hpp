// SPDX-License-Identifier: Apache-2.0
//
// All-reduce, its halves, and broadcast over send and recv. Each is one coroutine that a reader can follow; steps and
// bytes are in docs/algorithms.md. `members` are the ranks that take part, the same list on all, this rank at index `me`;
// the buffer holds this rank's summand and, at the end, the sum: to the bit the same on every member, because each element
// is summed in one place and copied from there, or by the same tree everywhere. All messages use `lane`, on which nothing
// else may be under way.
#pragma once

#include <regatta/strategy.hpp>

#include <bit>
#include <optional>
#include <span>
#include <vector>

namespace rg {

// The two halves of a ring (Patarasuk and Yuan, Bandwidth optimal all-reduce, 2009), n-1 steps each, in which a rank sends
// 1/n of the buffer to its right neighbour. After the first half rank i holds the sum of chunk i+1, after the second all
// hold all. `wire` as in comm::send: who sums a chunk then rounds it as those who get it see it.
inline rg_buffer ring_chunk(rg_buffer buffer, std::size_t i, std::size_t n) {
  const auto part = part_of({0, buffer.count}, i % n, n);
  return sub(buffer, part.first, part.count);
}
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

// 2(n-1) steps. Least bytes; the choice for large buffers.
inline task<> ring_all_reduce(comm& comm, std::span<const std::uint32_t> members, std::size_t me, rg_buffer buffer,
                              std::uint32_t lane, std::uint32_t wire = 0) {
  co_await ring_reduce_scatter(comm, members, me, buffer, lane, wire);
  co_await ring_all_gather(comm, members, me, buffer, lane, wire);
}

// Who shares a host with whom, for an all-reduce first inside hosts and then between them.
struct host_groups {
  std::vector<std::uint32_t> here;   // members on this rank's host
  std::vector<std::uint32_t> across; // of every host the member at this rank's place in `here`
  std::size_t place = 0, host = 0;   // this rank in `here` and in `across`
};
// Nothing where hosts do not hold equally many members, or there is one host.
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
    const auto place = std::find(by_host[h].begin(), by_host[h].end(), members[me]);
    if (place == by_host[h].end()) continue;
    g.host = h;
    g.place = static_cast<std::size_t>(place - by_host[h].begin());
    g.here = by_host[h];
  }
  if (by_host.size() < 2) return std::nullopt;
  for (const auto& on : by_host) g.across.push_back(on[g.place]);
  return g;
}

// First inside every host, then between hosts, then inside again (as Mikami et al., Massively distributed SGD, 2018,
// section 3.3, on a 2D torus): the m ranks of a host scatter their sum among themselves, each of them reduces its 1/m
// with its likes on the other h - 1 hosts, and what came of it is gathered inside. 2(m-1) steps inside and 2(h-1)
// between; between hosts a rank sends 2(h-1)/h of an m-th of the buffer.
inline task<> hierarchical_all_reduce(comm& comm, const host_groups& g, rg_buffer buffer, std::uint32_t lane,
                                      std::uint32_t wire = 0) {
  co_await ring_reduce_scatter(comm, g.here, g.place, buffer, lane, wire);
  co_await ring_all_reduce(comm, g.across, g.host, ring_chunk(buffer, g.place + 1, g.here.size()), lane, wire);
  co_await ring_all_gather(comm, g.here, g.place, buffer, lane, wire);
}

// The corners of a hypercube, for algorithms that pair ranks at distances 1, 2, 4, ...: where n is no power of two, the
// first 2(n - 2^k) ranks join in pairs, of which the odd one stays and takes part for both.
class hypercube {
public:
  hypercube(std::span<const std::uint32_t> members, std::size_t me)
      : members_(members), size_(std::bit_floor(members.size())), extra_(members.size() - size_), me_(me) {}

  std::size_t size() const { return size_; }
  // This rank among those that stay.
  std::size_t self() const { return me_ < 2 * extra_ ? me_ / 2 : me_ - extra_; }
  std::uint32_t rank_of(std::size_t corner) const {
    return members_[corner < extra_ ? 2 * corner + 1 : corner + extra_];
  }
  // One of a pair: the one that leaves it to the other, or the one that stays.
  bool joins() const { return me_ < 2 * extra_ && me_ % 2 == 0; }
  bool is_joined() const { return me_ < 2 * extra_ && me_ % 2 == 1; }
  std::uint32_t other() const { return members_[me_ ^ 1]; }

private:
  std::span<const std::uint32_t> members_;
  std::size_t size_, extra_, me_;
};

// Recursive doubling (Thakur et al., 2005, section 4.5): log2(n) steps, in each of which partners at distance 1, 2, 4, ...
// exchange all they hold, and add. Least steps; the choice for small buffers, and for two ranks, to whom it costs no more
// bytes than the ring. `scratch`: as large as the buffer, of its type. Every member forms the sums itself, by the same
// tree: a + b is b + a to the bit (but for what a NaN carries).
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
    co_await comm.round(buffer, wire); // what the partner adds is what is added here
    auto in = comm.recv(partner, theirs, lane, wire);
    auto out = comm.send(partner, buffer, lane, wire);
    co_await in;
    co_await out;
    co_await comm.axpy(buffer, 1, theirs);
  }
  co_await comm.round(buffer, wire);
  if (cube.is_joined()) co_await comm.send(cube.other(), buffer, lane, wire);
}

// Recursive halving, then doubling (Rabenseifner, Optimization of collective reduction operations, 2004; Thakur et al.,
// 2005, section 4.5). 2 log2(n) steps and the ring's bytes where n is a power of two; the choice between those for small
// and for large buffers.
inline task<> halving_doubling_all_reduce(comm& comm, std::span<const std::uint32_t> members, std::size_t me,
                                          rg_buffer buffer, std::uint32_t lane, std::uint32_t wire = 0) {
  const hypercube cube(members, me);
  if (cube.joins()) {
    co_await comm.send(cube.other(), buffer, lane, wire);
    co_await comm.recv(cube.other(), buffer, lane, wire);
    co_return;
  }
  if (cube.is_joined()) co_await comm.recv_add(cube.other(), buffer, lane, wire);

  // Halving: with a partner at distance d, keep one half of what is left and give the other away. Parts are numbered
  // [low, high) of cube.size().
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
  // Doubling: the same partners backwards, each hands over all it holds.
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

// The buffer of members[root] to all, down a binomial tree (as Thakur et al., section 4.3): ceil(log2 n) steps, in each of
// which everybody who has it sends the whole to one who has not. The choice for small buffers, and for two.
inline task<> tree_broadcast(comm& comm, std::span<const std::uint32_t> members, std::size_t me, std::size_t root,
                             rg_buffer buffer, std::uint32_t lane, std::uint32_t wire = 0) {
  const std::size_t n = members.size(), self = (me + n - root) % n; // the root is number 0
  auto rank_of = [&](std::size_t number) { return members[(number + root) % n]; };
  // Number 6 (110) gets it from 4 (100), its lowest bit left out, and passes it on to 7 (111), at lesser distances.
  std::size_t distance = self ? self & (~self + 1) : std::bit_ceil(n);
  if (self)
    co_await comm.recv(rank_of(self - distance), buffer, lane, wire);
  else
    co_await comm.round(buffer, wire);
  while (distance /= 2)
    if (self + distance < n) co_await comm.send(rank_of(self + distance), buffer, lane, wire);
}

// The same by scattering and gathering (van de Geijn's; Thakur et al., section 4.3): the root sends each member its chunk,
// and the chunks go round the ring. n steps, but no rank sends more than twice the buffer; the choice for large buffers.
inline task<> scatter_gather_broadcast(comm& comm, std::span<const std::uint32_t> members, std::size_t me,
                                       std::size_t root, rg_buffer buffer, std::uint32_t lane, std::uint32_t wire = 0) {
  const std::size_t n = members.size();
  // The ring begins with chunk i + 1 at member i.
  for (std::size_t i = 0; me == root && i < n; ++i)
    if (i != root) co_await comm.send(members[i], ring_chunk(buffer, i + 1, n), lane, wire);
  if (me != root) co_await comm.recv(members[root], ring_chunk(buffer, me + 1, n), lane, wire);
  co_await ring_all_gather(comm, members, me, buffer, lane, wire);
}

} // namespace rg
