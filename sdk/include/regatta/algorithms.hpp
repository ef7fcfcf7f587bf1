// SPDX-License-Identifier: Apache-2.0
//
// All-reduce over send and recv. Each is one coroutine that a reader can follow; steps and bytes are in
// docs/algorithms.md. `members` are the ranks that take part, the same list on all, this rank at index `me`; the buffer
// holds this rank's summand and, at the end, the sum: to the bit the same on every member, because each element is
// summed in one place and copied from there. All messages use `lane`, on which nothing else may be under way.
#pragma once

#include <regatta/strategy.hpp>

#include <bit>
#include <span>

namespace rg {

// Ring (Patarasuk and Yuan, Bandwidth optimal all-reduce, 2009). 2(n-1) steps, in each of which a rank sends 1/n of the
// buffer to its right neighbour. Least bytes; the choice for large buffers.
inline task<> ring_all_reduce(comm& comm, std::span<const std::uint32_t> members, std::size_t me, rg_buffer buffer,
                              std::uint32_t lane) {
  const std::size_t n = members.size();
  const std::uint32_t right = members[(me + 1) % n], left = members[(me + n - 1) % n];
  auto chunk = [&](std::size_t i) {
    const auto part = part_of({0, buffer.count}, i % n, n);
    return sub(buffer, part.first, part.count);
  };
  // Chunk c starts at rank c and gathers a summand at every stop; after n-1 steps rank me holds the sum of chunk me+1.
  for (std::size_t s = 0; s + 1 < n; ++s) {
    auto in = comm.recv_add(left, chunk(me + 2 * n - s - 1), lane);
    auto out = comm.send(right, chunk(me + n - s), lane);
    co_await in;
    co_await out;
  }
  // The finished chunks go round once more.
  for (std::size_t s = 0; s + 1 < n; ++s) {
    auto in = comm.recv(left, chunk(me + n - s), lane);
    auto out = comm.send(right, chunk(me + n - s + 1), lane);
    co_await in;
    co_await out;
  }
}

// Recursive halving, then doubling (Rabenseifner, Optimization of collective reduction operations, 2004; Thakur et al.,
// 2005, section 4.5). 2 log2(n) steps and the ring's bytes where n is a power of two; the choice for small buffers.
// With other n the first 2(n - 2^k) ranks join in pairs before, and the ones left out get the result after.
inline task<> halving_doubling_all_reduce(comm& comm, std::span<const std::uint32_t> members, std::size_t me,
                                          rg_buffer buffer, std::uint32_t lane) {
  const std::size_t n = members.size(), half = std::bit_floor(n), extra = n - half;
  if (me < 2 * extra && me % 2 == 0) {
    co_await comm.send(members[me + 1], buffer, lane);
    co_await comm.recv(members[me + 1], buffer, lane);
    co_return;
  }
  if (me < 2 * extra) co_await comm.recv_add(members[me - 1], buffer, lane);
  // Numbers 0 .. half-1 among those that stay.
  const std::size_t self = me < 2 * extra ? me / 2 : me - extra;
  auto rank_of = [&](std::size_t i) { return members[i < extra ? 2 * i + 1 : i + extra]; };

  // Halving: with a partner at distance d, keep one half of what is left and give the other away. Parts are numbered
  // [low, high) of `half`.
  std::size_t low = 0, high = half;
  auto parts = [&](std::size_t from, std::size_t to) {
    const auto a = part_of({0, buffer.count}, from, half);
    const std::uint64_t end = to == from ? a.first : part_of({0, buffer.count}, to - 1, half).end();
    return sub(buffer, a.first, end - a.first);
  };
  for (std::size_t d = half / 2; d > 0; d /= 2) {
    const std::size_t middle = low + d;
    const bool lower = self < middle;
    const std::uint32_t partner = rank_of(self ^ d);
    auto in = comm.recv_add(partner, lower ? parts(low, middle) : parts(middle, high), lane);
    auto out = comm.send(partner, lower ? parts(middle, high) : parts(low, middle), lane);
    co_await in;
    co_await out;
    (lower ? high : low) = middle;
  }
  // Doubling: the same partners backwards, each hands over all it holds.
  for (std::size_t d = 1; d < half; d *= 2) {
    const std::uint32_t partner = rank_of(self ^ d);
    const bool lower = (self & d) == 0;
    auto in = comm.recv(partner, lower ? parts(high, high + d) : parts(low - d, low), lane);
    auto out = comm.send(partner, parts(low, high), lane);
    co_await in;
    co_await out;
    if (lower)
      high += d;
    else
      low -= d;
  }
  if (me < 2 * extra) co_await comm.send(members[me - 1], buffer, lane);
}

} // namespace rg
