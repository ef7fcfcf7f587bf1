// SPDX-License-Identifier: Apache-2.0
//
// Tests of the extensions for regions and collectives, for transports that have them.
#include "check/harness/rank_group.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <bit>
#include <csignal>
#include <cstring>
#include <numeric>
#include <random>

#include <fmt/format.h>
#include <regatta/comm.hpp>
#include <unistd.h>

#include <regatta/ext/collectives.h>
#include <regatta/ext/regions.h>

namespace regatta::conformance {
namespace {

struct collective_kind {
  const char* name;
  endpoint::collective_function function;
  bool sums;
};
constexpr collective_kind reduces = {"all_reduce", &rg_collectives::all_reduce, true};
constexpr collective_kind scatters = {"reduce_scatter", &rg_collectives::reduce_scatter, true};
constexpr collective_kind gathers = {"all_gather", &rg_collectives::all_gather, false};
constexpr collective_kind broadcasts = {"broadcast", &rg_collectives::broadcast, false};

bool offers_collective(const subject& which, const collective_kind& k) {
  endpoint e(which, 0, 1, 1);
  const auto* c = e.extension<rg_collectives>(RG_EXT_COLLECTIVES);
  return c && rg::copy_versioned(*c).*k.function;
}
std::vector<collective_kind> all_of(const subject& which) {
  std::vector<collective_kind> all;
  for (const collective_kind& k : {reduces, scatters, gathers, broadcasts})
    if (offers_collective(which, k)) all.push_back(k);
  if (all.empty()) throw skipped("it does not offer " RG_EXT_COLLECTIVES);
  return all;
}

std::uint32_t split(endpoint& e, const std::vector<std::uint32_t>& members) {
  std::uint32_t group = 0;
  e.check(e.extension<rg_collectives>(RG_EXT_COLLECTIVES)
              ->split(e.self(), members.data(), static_cast<std::uint32_t>(members.size()), &group),
          "split");
  return group;
}

std::vector<std::uint32_t> first_ranks(std::uint32_t count) {
  std::vector<std::uint32_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// One collective of a group with this rank in it: its input and its expected result.
struct exercise {
  collective_kind kind;
  std::uint32_t type;
  std::uint64_t count;
  std::uint32_t root;
  std::uint64_t offset = 0, cookie = 0; // set by run_collectives()

  std::uint64_t element() const { return rg::size_of(type); }
  std::uint64_t bytes() const { return count * element(); }

  void put(std::byte* to, std::uint32_t rank) const {
    if (!kind.sums) return fill(to, bytes(), content(rank));
    for (std::uint64_t i = 0; i < count; ++i) reinterpret_cast<float*>(to)[i] = term(rank, i);
  }
  // Throws failed if `got` is not the result that this rank must hold.
  void verify(const std::byte* got, const std::vector<std::uint32_t>& members, std::uint32_t rank) const {
    const rg::span_of_arena whole{0, count};
    const auto shard = [&](std::uint64_t k) { return rg::part_of(whole, k, members.size()); };
    const auto position = static_cast<std::uint64_t>(std::find(members.begin(), members.end(), rank) - members.begin());
    if (kind.sums) return verify_sum(got, members, kind.function == scatters.function ? shard(position) : whole);
    if (kind.function == broadcasts.function) return verify_copy(got, members[root], whole);
    for (std::uint64_t k = 0; k < members.size(); ++k) verify_copy(got, members[k], shard(k));
  }

private:
  std::uint64_t content(std::uint32_t rank) const { return rank * 1000 + count % 1000; }

  // Built only for a failure, because checks run often.
  std::string element_name(std::uint64_t i) const {
    return fmt::format("{} of {} elements: element {}", kind.name, count, i);
  }
  void verify_sum(const std::byte* got, const std::vector<std::uint32_t>& members, rg::span_of_arena p) const {
    const auto* floats = reinterpret_cast<const float*>(got);
    for (std::uint64_t i = p.first; i < p.end(); ++i) {
      float sum = term(members.front(), i);
      for (std::size_t k = 1; k < members.size(); ++k) sum += term(members[k], i);
      if (std::bit_cast<std::uint32_t>(floats[i]) != std::bit_cast<std::uint32_t>(sum))
        throw failed(element_name(i) + " is not the sum in rank order");
    }
  }
  void verify_copy(const std::byte* got, std::uint32_t from, rg::span_of_arena p) const {
    std::vector<std::byte> theirs(bytes());
    fill(theirs.data(), bytes(), content(from));
    const auto first = p.first * element(), end = p.end() * element();
    if (first < end && std::memcmp(got + first, theirs.data() + first, end - first) != 0)
      throw failed(element_name(p.first) + " or one behind it differs from that of rank " + std::to_string(from));
  }
};

// Begins all collectives, then waits for all. Bytes between their buffers must not change.
void run_collectives(endpoint& e, std::uint32_t group, const std::vector<std::uint32_t>& members,
                     std::vector<exercise> exercises) {
  constexpr std::uint64_t gap = 68; // lets buffers start anywhere in a cache line
  std::uint64_t bytes = gap;
  for (exercise& x : exercises) {
    x.offset = bytes;
    bytes += (x.bytes() + 3) / 4 * 4 + gap;
  }
  const memory m = e.allocate(bytes);
  fill(m.data, bytes, 7);
  for (const exercise& x : exercises) x.put(m.data + x.offset, e.rank());
  for (exercise& x : exercises) x.cookie = e.collective(x.kind.function, group, m, x.offset, x.type, x.count, x.root);
  for (const exercise& x : exercises) {
    require(e.finish(x.cookie) == x.bytes(), "a collective completes with another length than that of its buffer");
    x.verify(m.data + x.offset, members, e.rank());
  }
  std::vector<std::byte> untouched(bytes);
  fill(untouched.data(), bytes, 7);
  std::uint64_t from = 0;
  const auto require_untouched = [&](std::uint64_t end) { // bytes [from, end)
    require(std::equal(m.data + from, m.data + end, untouched.data() + from),
            "a collective changes bytes outside its buffer");
  };
  for (const exercise& x : exercises) {
    require_untouched(x.offset);
    from = x.offset + x.bytes();
  }
  require_untouched(bytes);
}

// Sizes that do not divide evenly among the members; some shards are empty.
std::vector<exercise> of_all_sizes(const collective_kind& k, std::uint32_t members) {
  std::vector<exercise> all;
  for (const std::uint64_t count : {0, 1, 2, 15, 16, 17, 40, 1000, 4097, 65536, 300'007})
    all.push_back({k, RG_F32, count, static_cast<std::uint32_t>(all.size() % members)});
  if (!k.sums)
    for (const std::uint64_t count : {1, 33, 1023, 100'003})
      all.push_back({k, RG_U8, count, static_cast<std::uint32_t>(all.size() % members)});
  return all;
}

template <const collective_kind& k> void check_collective(const subject& which) {
  if (!offers_collective(which, k)) throw skipped(fmt::format("it does not offer {}", k.name));
  for (const std::uint32_t ranks : {1u, 2u, 3u, 4u})
    for (const ranks_as where : {ranks_as::threads, ranks_as::processes})
      run_ranks(which, {.ranks = ranks, .kind = where}, [&](member& self) {
        const std::vector<std::uint32_t> all = first_ranks(ranks);
        const std::uint32_t group = split(*self, all);
        for (int round = 0; round < 2; ++round) run_collectives(*self, group, all, of_all_sizes(k, ranks));
      });
}

void groups(const subject& which) {
  const std::vector<collective_kind> kinds = all_of(which);
  run_ranks(which, {.ranks = 4}, [&](member& self) {
    const std::vector<std::uint32_t> groups[] = {{0, 2}, {1, 2, 3}, {0, 1, 2, 3}, {3}};
    std::uint32_t group_ids[4] = {};
    auto member_of = [&](const std::vector<std::uint32_t>& g) {
      return std::find(g.begin(), g.end(), self->rank()) != g.end();
    };
    for (std::size_t k = 0; k < 4; ++k)
      if (member_of(groups[k])) group_ids[k] = split(*self, groups[k]);
    for (const collective_kind& what : kinds)
      for (std::size_t k = 0; k < 4; ++k)
        if (member_of(groups[k]))
          run_collectives(*self, group_ids[k], groups[k],
                          of_all_sizes(what, static_cast<std::uint32_t>(groups[k].size())));
  });
}

void outstanding(const subject& which) {
  const std::vector<collective_kind> kinds = all_of(which);
  run_ranks(which, {.ranks = 3}, [&](member& self) {
    std::mt19937_64 random(which.seed);
    std::vector<exercise> many;
    for (int i = 0; i < 100; ++i) {
      const std::uint64_t count = random() % (std::uint64_t{1} << random() % 18); // spread over orders of magnitude
      many.push_back({kinds[random() % kinds.size()], RG_F32, count, static_cast<std::uint32_t>(random() % 3)});
    }
    run_collectives(*self, split(*self, first_ranks(3)), first_ranks(3), many);
  });
}

void with_messages(const subject& which) {
  const std::vector<collective_kind> kinds = all_of(which);
  run_ranks(which, {.ranks = 2}, [&](member& self) {
    const std::uint32_t group = split(*self, {0, 1}), peer = 1 - self->rank();
    const memory m = self->allocate(1 << 20);
    for (const collective_kind& k : kinds) {
      fill(m.data, 1 << 19, self->rank());
      const std::uint64_t sent = self->send(peer, 0, m, 0, 1 << 19);
      const std::uint64_t received = self->recv(peer, 0, m, 1 << 19, 1 << 19);
      run_collectives(*self, group, {0, 1}, of_all_sizes(k, 2));
      self->finish(sent);
      self->finish(received);
      require(is_filled(m.data + (1 << 19), 1 << 19, peer), "a message that crosses collectives arrives changed");
      self.barrier(); // the peer has read the buffer that the next round fills
    }
  });
}

// Rank 2 dies inside a collective and never joins the next one.
void killed_member(const subject& which) {
  for (const collective_kind& k : all_of(which)) {
    const auto wrong =
        errors_of_ranks(which, {.ranks = 3, .kind = ranks_as::processes, .close = false}, [&](member& self) {
          constexpr std::uint64_t count = 1 << 20;
          const std::uint32_t group = split(*self, first_ranks(3));
          const memory m = self->allocate(2 * count * sizeof(float));
          const std::uint64_t first = self->collective(k.function, group, m, 0, RG_F32, count, 2);
          if (self->rank() == 2) {
            self->poll(0);
            kill(getpid(), SIGKILL);
          }
          // A collective that begins after the death was noticed may fail at once.
          std::uint64_t second = 0;
          const rg_status begun =
              self->try_collective(k.function, group, m, count * sizeof(float), RG_F32, count, 2, second);
          const rg_status before = self->wait(first).status;
          require(before == RG_OK || before == RG_E_PEER,
                  fmt::format("{} during which a rank is killed ends with status {}; expected RG_OK or RG_E_PEER",
                              k.name, before));
          const rg_status after = begun < 0 ? begun : self->wait(second).status;
          require(after == RG_E_PEER,
                  fmt::format("{} with a killed rank ends with status {}; expected RG_E_PEER", k.name, after));
          require(self->last_error().find("rank 2") != std::string::npos,
                  "the error text does not name rank 2: \"" + self->last_error() + "\"");
          self->exchange(1 - self->rank(), self->allocate(2 * MiB), MiB);
          self->close();
        });
    if (wrong != std::vector<std::string>{"rank 2: signal 9"})
      throw failed(std::string(k.name) + ": " + join(wrong, "; "));
  }
}

// Bad arguments are rejected; later collectives still work.
void refused_collectives(const subject& which) {
  const std::vector<collective_kind> kinds = all_of(which);
  run_ranks(which, {.ranks = 2}, [&](member& self) {
    const std::uint32_t group = split(*self, {0, 1});
    const memory m = self->allocate(64), ghost{m.region, nullptr, 64};
    for (const collective_kind& k : kinds) {
      std::uint64_t cookie = 0;
      const auto rejects = [&](const memory& where, std::uint32_t in, std::uint32_t type, std::uint32_t root) {
        return self->try_collective(k.function, in, where, 0, type, 4, root, cookie) < 0;
      };
      const std::string name = k.name;
      require(rejects(m, group + 1, RG_F32, 0), name + " accepts a group that does not exist");
      require(rejects(ghost, group, RG_F32, 0), name + " accepts a ghost (a buffer without address)");
      if (k.sums) require(rejects(m, group, RG_F64, 0), name + " accepts fp64; sums are of fp32 only");
      if (k.function == broadcasts.function)
        require(rejects(m, group, RG_F32, 2), name + " accepts a root that is not in the group");
      require(!self->last_error().empty(), name + " returns an error without a text; call rg_host.fail() first");
      run_collectives(*self, group, {0, 1}, of_all_sizes(k, 2));
    }
  });
}

void zeroed_memory(const subject& which) {
  const auto check_memory = [](endpoint& e, std::uint64_t bytes) {
    const memory m = e.allocate(bytes);
    require(std::all_of(m.data, m.data + m.bytes, [](std::byte b) { return b == std::byte{0}; }),
            "memory that the transport allocates is not zeroed");
  };
  endpoint early(which, 0, 2, 1);
  if (!early.extension<rg_regions>(RG_EXT_REGIONS)) throw skipped("it does not offer " RG_EXT_REGIONS);
  check_memory(early, 100'000);
  run_ranks(which, {}, [&](member& self) {
    for (const std::uint64_t bytes : {1, 4096, 3'000'000}) check_memory(*self, bytes);
  });
}

} // namespace

std::vector<test> collective_tests() {
  return {
      {"all-reduce", "an all-reduce gives the sum in rank order, bit-identically", check_collective<reduces>},
      {"reduce-scatter", "every rank gets its shard of that sum, also if the buffer does not divide evenly",
       check_collective<scatters>},
      {"all-gather", "every rank's shard reaches all ranks, also if the buffer does not divide evenly",
       check_collective<gathers>, false, true},
      {"broadcast", "the root's buffer reaches all ranks, whichever rank is the root", check_collective<broadcasts>,
       false, true},
      {"groups", "groups can be any ranks, and overlap", groups},
      {"outstanding", "a hundred collectives of all kinds can be pending at once", outstanding},
      {"collectives-and-messages", "messages and collectives can be pending at the same time", with_messages, false,
       true},
      {"killed-member", "collectives with a killed rank end with RG_E_PEER; the other ranks still exchange messages",
       killed_member},
      {"refused-collectives", "groups, roots and types that do not exist, and ghosts, are rejected with a text",
       refused_collectives, false, true},
      {"memory", "memory that the transport allocates is zeroed, before connect() and after", zeroed_memory},
  };
}

} // namespace regatta::conformance
