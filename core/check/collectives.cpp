// SPDX-License-Identifier: Apache-2.0
//
// The extensions, where a transport has them: regions and collectives.
#include "check/world.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace regatta::conformance {
namespace {

float term(std::uint32_t rank, std::uint64_t i) {
  const std::uint64_t x = (rank * 0x9e3779b97f4a7c15 + i) * 0xbf58476d1ce4e5b9;
  return std::ldexp(static_cast<float>(static_cast<std::int64_t>(x >> 40)) - 8388608.0f,
                    static_cast<int>((x >> 32) & 31) - 28);
}

std::uint32_t split(endpoint& e, const std::vector<std::uint32_t>& members) {
  std::uint32_t group = 0;
  e.check(e.extension<rg_collectives>(RG_EXT_COLLECTIVES)
              ->split(e.self(), members.data(), static_cast<std::uint32_t>(members.size()), &group),
          "split");
  return group;
}

// Sums of several sizes at once over a group that this rank belongs to.
void reduce(endpoint& e, std::uint32_t group, const std::vector<std::uint32_t>& members) {
  const std::uint64_t counts[] = {1, 2, 3, 15, 16, 1000, 4097, 65536, 1000003};
  const memory m = e.allocate(4 * 1200000);
  std::vector<std::uint64_t> cookies;
  std::uint64_t first = 0;
  for (const std::uint64_t count : counts) {
    for (std::uint64_t i = 0; i < count; ++i) m.floats()[first + i] = term(e.rank(), i);
    std::uint64_t cookie = 0;
    rg_status s;
    while ((s = e.all_reduce(group, m, first, count, cookie)) == RG_AGAIN) e.poll(second / 1000);
    e.check(s, "all_reduce");
    cookies.push_back(cookie);
    first += (count + 15) / 16 * 16;
  }
  e.finish(cookies);
  first = 0;
  for (const std::uint64_t count : counts) {
    for (std::uint64_t i = 0; i < count; ++i) {
      float sum = term(members.front(), i);
      for (std::size_t k = 1; k < members.size(); ++k) sum += term(members[k], i);
      // The text is made only where it is needed: this runs often.
      if (std::bit_cast<std::uint32_t>(m.floats()[first + i]) != std::bit_cast<std::uint32_t>(sum))
        throw failed("the sum of " + std::to_string(count) + " is not the one in rank order, at " + std::to_string(i));
    }
    first += (count + 15) / 16 * 16;
  }
}

void need(const subject& which, const char* extension) {
  if (!offers(which, extension)) throw skipped(std::string("it does not offer ") + extension);
}

void all_reduce(const subject& which) {
  need(which, RG_EXT_COLLECTIVES);
  for (const std::uint32_t ranks : {2u, 3u, 4u})
    for (const as kind : {as::threads, as::processes})
      run_ranks(which, {.ranks = ranks, .kind = kind}, [ranks](member& self) {
        std::vector<std::uint32_t> all;
        for (std::uint32_t r = 0; r < ranks; ++r) all.push_back(r);
        const std::uint32_t group = split(*self, all);
        for (int round = 0; round < 3; ++round) reduce(*self, group, all);
      });
}

void groups(const subject& which) {
  need(which, RG_EXT_COLLECTIVES);
  run_ranks(which, {.ranks = 4}, [](member& self) {
    const std::vector<std::uint32_t> groups[] = {{0, 2}, {1, 2, 3}, {0, 1, 2, 3}, {3}};
    std::uint32_t made[4] = {};
    auto member_of = [&](const std::vector<std::uint32_t>& g) {
      return std::find(g.begin(), g.end(), self->rank()) != g.end();
    };
    for (std::size_t k = 0; k < 4; ++k)
      if (member_of(groups[k])) made[k] = split(*self, groups[k]);
    for (std::size_t k = 0; k < 4; ++k)
      if (member_of(groups[k])) reduce(*self, made[k], groups[k]);
  });
}

void side_by_side(const subject& which) {
  need(which, RG_EXT_COLLECTIVES);
  run_ranks(which, {.ranks = 2}, [](member& self) {
    const std::uint32_t group = split(*self, {0, 1}), peer = 1 - self->rank();
    const memory m = self->allocate(1 << 20);
    fill(m.data, 1 << 19, self->rank());
    const std::uint64_t sent = self->send(peer, 0, m, 0, 1 << 19);
    const std::uint64_t received = self->recv(peer, 0, m, 1 << 19, 1 << 19);
    reduce(*self, group, {0, 1});
    self->finish(sent);
    self->finish(received);
    require(is_filled(m.data + (1 << 19), 1 << 19, peer), "a message arrives changed");
  });
}

void zeroed_memory(const subject& which) {
  need(which, RG_EXT_REGIONS);
  endpoint early(which, 0, 2, 1);
  const memory m = early.allocate(100'000);
  require(std::all_of(m.data, m.data + m.bytes, [](std::byte b) { return b == std::byte{0}; }), "not zeroed");
  run_ranks(which, {}, [](member& self) {
    for (const std::uint64_t bytes : {1, 4096, 3'000'000}) {
      const memory z = self->allocate(bytes);
      require(std::all_of(z.data, z.data + z.bytes, [](std::byte b) { return b == std::byte{0}; }), "not zeroed");
    }
  });
}

} // namespace

const std::vector<test>& collective_tests() {
  static const std::vector<test> all = {
      {"all-reduce", "an all-reduce is the sum in rank order, to the bit", all_reduce},
      {"groups", "groups may be any ranks, and overlap", groups},
      {"collectives-and-messages", "messages and collectives go side by side", side_by_side},
      {"memory", "memory of the transport's starts as zeros, before connect and after", zeroed_memory},
  };
  return all;
}

} // namespace regatta::conformance
