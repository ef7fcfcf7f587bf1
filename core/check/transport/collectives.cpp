// SPDX-License-Identifier: Apache-2.0
//
// Tests of the extensions for regions and collectives, for transports that have them.
#include "check/harness/rank_group.hpp"
#include "check/transport/collective_exercise.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <csignal>
#include <numeric>
#include <random>

#include <fmt/format.h>
#include <unistd.h>

#include <regatta/ext/regions.h>

namespace regatta::conformance {
namespace {

std::vector<offer> offers_of(const subject& which) {
  endpoint e(which, 0, 1, 1);
  const auto* table = e.extension<rg_collectives>(RG_EXT_COLLECTIVES);
  if (!table) throw skipped("it does not offer " RG_EXT_COLLECTIVES);
  const rg_collectives c = rg::copy_versioned(*table);
  std::vector<offer> offered;
  for (const offer& o : all_offers())
    if (c.offers(e.self(), o.of.kind, o.reduction, o.type, o.wire ? o.wire->type : 0)) offered.push_back(o);
  if (offered.empty()) throw skipped("it offers no collective");
  return offered;
}
// One offer of each kind.
std::vector<offer> first_of_each_kind(const subject& which) {
  std::vector<offer> some;
  for (const offer& o : offers_of(which))
    if (some.empty() || some.back().of.kind != o.of.kind) some.push_back(o);
  return some;
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

template <std::uint32_t kind> void check_collective(const subject& which) {
  std::vector<offer> offered = offers_of(which);
  std::erase_if(offered, [](const offer& o) { return o.of.kind != kind; });
  if (offered.empty()) throw skipped("it does not offer this collective");
  for (const std::uint32_t ranks : {1u, 2u, 3u, 4u})
    for (const ranks_as where : {ranks_as::threads, ranks_as::processes})
      run_ranks(which, {.ranks = ranks, .kind = where}, [&](member& self) {
        const std::vector<std::uint32_t> all = first_ranks(ranks);
        const std::uint32_t group = split(*self, all);
        for (int round = 0; round < 2; ++round)
          for (const offer& o : offered) run_collectives(*self, group, all, of_all_sizes(o, ranks));
      });
}

// Bytes that rank `self` sent and received during an all-reduce of `o`.
std::uint64_t bytes_moved(endpoint& e, std::uint32_t group, const offer& o, std::uint32_t ranks) {
  const rg_counters before = e.counters();
  run_collectives(e, group, first_ranks(ranks), {{.what = o, .count = 1 << 20}});
  const rg_counters after = e.counters();
  return after.bytes_sent - before.bytes_sent + after.bytes_received - before.bytes_received;
}

// Values with a wire type are the other tests' subject.
void wire(const subject& which) {
  const std::vector<offer> offered = offers_of(which);
  endpoint e(which, 0, 1, 1);
  const auto c = rg::copy_versioned(*e.extension<rg_collectives>(RG_EXT_COLLECTIVES));
  for (const offer& o : all_offers())
    for (std::uint32_t type = RG_F32; type <= RG_U1 && !o.wire; ++type) {
      const auto named = [&](const wire_type& w) { return w.type == type; };
      const bool exists = o.type == RG_F32 && o.of.kind != RG_OP_BARRIER && std::ranges::any_of(wire_types, named);
      require(exists || type == RG_F32 || !c.offers(e.self(), o.of.kind, o.reduction, o.type, type),
              fmt::format("it offers {} of type {} with wire type {}; elements of RG_F32 have a wire type, which is a "
                          "smaller floating-point type, and no others",
                          o.of.name, o.type, type));
    }
  if (std::ranges::none_of(offered, [](const offer& o) { return o.wire != nullptr; }))
    throw skipped("it offers no collective with a wire type");
  run_ranks(which, {}, [&](member& self) {
    const std::uint32_t group = split(*self, {0, 1});
    for (const offer& o : offered) {
      if (!o.wire || o.of.kind != RG_OP_ALL_REDUCE) continue;
      const std::uint64_t fewer = bytes_moved(*self, group, o, 2);
      offer whole = o;
      whole.wire = nullptr;
      if (!c.offers(e.self(), whole.of.kind, whole.reduction, whole.type, 0)) continue;
      const std::uint64_t bytes = bytes_moved(*self, group, whole, 2);
      require(
          10 * fewer <= 7 * bytes,
          fmt::format("an all-reduce with wire type {} moves {} bytes by the counters, and one without {}; expected "
                      "at most 0.7 of them",
                      o.wire->name, fewer, bytes));
    }
  });
}

// Rank 0 begins each barrier last.
void barrier(const subject& which) {
  if (offers_of(which).back().of.kind != RG_OP_BARRIER) throw skipped("it does not offer this collective");
  run_ranks(which, {.ranks = 3}, [&](member& self) {
    const memory m = self->allocate(64);
    auto call = rg::make_versioned<rg_collective>();
    call.kind = RG_OP_BARRIER;
    call.group = split(*self, first_ranks(3));
    for (int round = 0; round < 20; ++round) {
      std::uint64_t begun = 0;
      if (self->rank() != 0) {
        begun = self->collective(call, m);
        for (int k = 0; k < 10; ++k) self->poll(0);
        require(!self->completed(begun), "a barrier ends before all ranks have begun it");
      }
      self.barrier();
      self->finish(self->rank() == 0 ? self->collective(call, m) : begun);
      self.barrier(); // rank 0 begins the next one last, too
    }
  });
}

void groups(const subject& which) {
  const std::vector<offer> offered = first_of_each_kind(which);
  run_ranks(which, {.ranks = 4}, [&](member& self) {
    const std::vector<std::uint32_t> groups[] = {{0, 2}, {1, 2, 3}, {0, 1, 2, 3}, {3}};
    std::uint32_t group_ids[4] = {};
    auto member_of = [&](const std::vector<std::uint32_t>& g) {
      return std::find(g.begin(), g.end(), self->rank()) != g.end();
    };
    for (std::size_t k = 0; k < 4; ++k)
      if (member_of(groups[k])) group_ids[k] = split(*self, groups[k]);
    for (const offer& what : offered)
      for (std::size_t k = 0; k < 4; ++k)
        if (member_of(groups[k]))
          run_collectives(*self, group_ids[k], groups[k],
                          of_all_sizes(what, static_cast<std::uint32_t>(groups[k].size())));
  });
}

void outstanding(const subject& which) {
  const std::vector<offer> offered = first_of_each_kind(which);
  run_ranks(which, {.ranks = 3}, [&](member& self) {
    std::mt19937_64 random(which.seed);
    std::vector<exercise> many;
    for (int i = 0; i < 100; ++i) {
      const std::uint64_t count = random() % (std::uint64_t{1} << random() % 18); // spread over orders of magnitude
      const offer& o = offered[random() % offered.size()];
      many.push_back({.what = o,
                      .count = o.of.kind == RG_OP_BARRIER ? 0 : count,
                      .root = static_cast<std::uint32_t>(random() % 3),
                      .in_place = o.of.kind != RG_OP_ALL_TO_ALL && random() % 2 == 0});
    }
    run_collectives(*self, split(*self, first_ranks(3)), first_ranks(3), many);
  });
}

void with_messages(const subject& which) {
  const std::vector<offer> offered = first_of_each_kind(which);
  run_ranks(which, {.ranks = 2}, [&](member& self) {
    const std::uint32_t group = split(*self, {0, 1}), peer = 1 - self->rank();
    const memory m = self->allocate(1 << 20);
    for (const offer& o : offered) {
      fill(m.data, 1 << 19, self->rank());
      const std::uint64_t sent = self->send(peer, 0, m, 0, 1 << 19);
      const std::uint64_t received = self->recv(peer, 0, m, 1 << 19, 1 << 19);
      run_collectives(*self, group, {0, 1}, of_all_sizes(o, 2));
      self->finish(sent);
      self->finish(received);
      require(is_filled(m.data + (1 << 19), 1 << 19, peer), "a message that crosses collectives arrives changed");
      self.barrier(); // the peer has read the buffer that the next round fills
    }
  });
}

// Begins a collective of `o` in group `group` of three members in which rank 2 is the root, at byte `at` of `m`.
// Returns the status, and the end of its buffers in `end`.
rg_status try_one(endpoint& e, const offer& o, std::uint32_t group, const memory& m, std::uint64_t at,
                  std::uint64_t count, std::uint64_t& cookie, std::uint64_t& end) {
  exercise x{
      .what = o, .count = o.of.kind == RG_OP_BARRIER ? 0 : count, .root = 2, .in_place = o.of.kind != RG_OP_ALL_TO_ALL};
  end = x.lay_out(at, e.rank(), 3);
  x.call.group = group;
  return e.try_collective(x.call, m, cookie);
}

// Rank 2 dies inside a collective and never joins the next one.
void killed_member(const subject& which) {
  for (const offer& o : first_of_each_kind(which)) {
    const std::string name = o.of.name;
    // Only these end on a rank in no other way than by what all others do.
    const bool needs_all = o.of.kind == RG_OP_ALL_REDUCE || o.of.kind == RG_OP_REDUCE_SCATTER ||
                           o.of.kind == RG_OP_ALL_GATHER || o.of.kind == RG_OP_ALL_TO_ALL ||
                           o.of.kind == RG_OP_BARRIER || o.of.kind == RG_OP_BROADCAST;
    if (!needs_all) continue;
    const auto wrong =
        errors_of_ranks(which, {.ranks = 3, .kind = ranks_as::processes, .close = false}, [&](member& self) {
          constexpr std::uint64_t count = 3 << 18;
          const std::uint32_t group = split(*self, first_ranks(3));
          const memory m = self->allocate(8 * count * sizeof(float));
          std::uint64_t first = 0, second = 0, end = 0;
          self->check(try_one(*self, o, group, m, 0, count, first, end), name);
          if (self->rank() == 2) {
            self->poll(0);
            kill(getpid(), SIGKILL);
          }
          // A collective that begins after the death was noticed may fail at once.
          const rg_status begun = try_one(*self, o, group, m, end, count, second, end);
          const rg_status before = self->wait(first).status;
          require(before == RG_OK || before == RG_E_PEER,
                  fmt::format("{} during which a rank is killed ends with status {}; expected RG_OK or RG_E_PEER", name,
                              before));
          const rg_status after = begun < 0 ? begun : self->wait(second).status;
          require(after == RG_E_PEER,
                  fmt::format("{} with a killed rank ends with status {}; expected RG_E_PEER", name, after));
          require(self->last_error().find("rank 2") != std::string::npos,
                  "the error text does not name rank 2: \"" + self->last_error() + "\"");
          self->exchange(1 - self->rank(), self->allocate(2 * MiB), MiB);
          self->close();
        });
    if (wrong != std::vector<std::string>{"rank 2: signal 9"}) throw failed(name + ": " + join(wrong, "; "));
  }
}

// Bad arguments are rejected; later collectives still work.
void refused_collectives(const subject& which) {
  const std::vector<offer> offered = first_of_each_kind(which);
  run_ranks(which, {.ranks = 2}, [&](member& self) {
    const std::uint32_t group = split(*self, {0, 1});
    const memory m = self->allocate(4096), ghost{m.region, nullptr, 4096};
    for (const offer& o : offered) {
      exercise x{.what = o, .count = o.of.kind == RG_OP_BARRIER ? 0u : 4u, .in_place = o.of.kind != RG_OP_ALL_TO_ALL};
      x.lay_out(0, self->rank(), 2);
      x.call.group = group;
      std::uint64_t cookie = 0;
      const std::string name = o.of.name;
      const auto rejects = [&](const rg_collective& c, const memory& where) {
        return self->try_collective(c, where, cookie) < 0;
      };
      rg_collective wrong = x.call;
      wrong.group = group + 1;
      require(rejects(wrong, m), name + " accepts a group that does not exist");
      if (x.call.source.count + x.call.target.count > 0)
        require(rejects(x.call, ghost), name + " accepts a ghost (a buffer without address)");
      wrong = x.call;
      wrong.root = 2;
      if (rg::has_root(o.of.kind)) require(rejects(wrong, m), name + " accepts a root that is not in the group");
      require(!self->last_error().empty(), name + " returns an error without a text; call rg_host.fail() first");
      run_collectives(*self, group, {0, 1}, of_all_sizes(o, 2));
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
      {"all-reduce",
       "an all-reduce gives all ranks the same sum, in rank order with RG_CAP_ASCENDING_SUMS, or average or maximum",
       check_collective<RG_OP_ALL_REDUCE>, false, true},
      {"reduce-scatter", "every rank gets its chunk of that, also if the buffer does not divide evenly",
       check_collective<RG_OP_REDUCE_SCATTER>, false, true},
      {"all-gather", "every rank's chunk reaches all ranks, also if the buffer does not divide evenly",
       check_collective<RG_OP_ALL_GATHER>, false, true},
      {"broadcast", "the root's buffer reaches all ranks, whichever rank is the root",
       check_collective<RG_OP_BROADCAST>, false, true},
      {"reduce", "the root gets the reduction of all ranks' elements", check_collective<RG_OP_REDUCE>, false, true},
      {"gather", "every rank's chunk reaches the root", check_collective<RG_OP_GATHER>, false, true},
      {"scatter", "every rank gets its chunk of the root's buffer", check_collective<RG_OP_SCATTER>, false, true},
      {"all-to-all", "chunk k of every rank's source reaches rank k", check_collective<RG_OP_ALL_TO_ALL>, false, true},
      {"wire-types", "with a wire type, collectives move fewer bytes; only elements of RG_F32 have one", wire, false,
       true},
      {"barrier", "a barrier ends when all ranks have begun it", barrier, false, true},
      {"groups", "groups can be any ranks, and overlap", groups},
      {"outstanding", "a hundred collectives of all kinds can be pending at once", outstanding},
      {"collectives-and-messages", "messages and collectives can be pending at the same time", with_messages, false,
       true},
      {"killed-member", "collectives with a killed rank end with RG_E_PEER; the other ranks still exchange messages",
       killed_member},
      {"refused-collectives", "groups and roots that do not exist, and ghosts, are rejected with a text",
       refused_collectives, false, true},
      {"memory", "memory that the transport allocates is zeroed, before connect() and after", zeroed_memory},
  };
}

} // namespace regatta::conformance
