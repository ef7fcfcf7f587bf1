// SPDX-License-Identifier: Apache-2.0
//
// Tests of the extensions for regions and collectives, for transports that have them.
#include "check/harness/rank_group.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <csignal>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <type_traits>

#include <fmt/format.h>
#include <regatta/collectives.hpp>
#include <unistd.h>

#include <regatta/ext/collectives.h>
#include <regatta/ext/regions.h>

namespace regatta::conformance {
namespace {

struct collective_kind {
  const char* name;
  std::uint32_t kind; // RG_OP_ALL_REDUCE, ...
};
constexpr collective_kind kinds[] = {{"all-reduce", RG_OP_ALL_REDUCE}, {"reduce-scatter", RG_OP_REDUCE_SCATTER},
                                     {"all-gather", RG_OP_ALL_GATHER}, {"broadcast", RG_OP_BROADCAST},
                                     {"reduce", RG_OP_REDUCE},         {"gather", RG_OP_GATHER},
                                     {"scatter", RG_OP_SCATTER},       {"all-to-all", RG_OP_ALL_TO_ALL},
                                     {"barrier", RG_OP_BARRIER}};

// Whether the chunks of all members are in the source, or in the target, while the other buffer has this rank's chunk.
bool cuts_source(std::uint32_t kind) {
  return kind == RG_OP_REDUCE_SCATTER || kind == RG_OP_SCATTER;
}
bool cuts_target(std::uint32_t kind) {
  return kind == RG_OP_ALL_GATHER || kind == RG_OP_GATHER;
}

// A collective as a transport may offer it.
struct offer {
  collective_kind of;
  std::uint32_t type = RG_F32, reduction = 0;
};
// The combinations that the suite tests, with those of RG_F32 and RG_SUM first.
std::vector<offer> all_offers() {
  std::vector<offer> all;
  for (const collective_kind& k : kinds)
    if (!rg::reduces(k.kind))
      for (const std::uint32_t type : {RG_F32, RG_U8}) all.push_back({k, type});
    else
      for (const std::uint32_t reduction : {RG_SUM, RG_AVERAGE, RG_MAX})
        for (const std::uint32_t type : {RG_F32, RG_F64, RG_I32, RG_I64}) all.push_back({k, type, reduction});
  return all;
}
std::vector<offer> offers_of(const subject& which) {
  endpoint e(which, 0, 1, 1);
  const auto* table = e.extension<rg_collectives>(RG_EXT_COLLECTIVES);
  if (!table) throw skipped("it does not offer " RG_EXT_COLLECTIVES);
  const rg_collectives c = rg::copy_versioned(*table);
  std::vector<offer> offered;
  for (const offer& o : all_offers())
    if (c.offers(e.self(), o.of.kind, o.reduction, o.type, 0)) offered.push_back(o);
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

// ------------------------------------------------------------------------------------------------- one collective ---

template <class T> std::vector<T> numbers_of(const std::byte* from, std::uint64_t count) {
  std::vector<T> all(count);
  if (count > 0) std::memcpy(all.data(), from, count * sizeof(T));
  return all;
}

// A collective of a group with this rank in it. Every member r has elements W(r), as many as the buffer that all chunks
// are in; its source is W(r) or its chunk of that.
struct exercise {
  offer what;
  std::uint64_t count; // of the buffer with all chunks; in an all-to-all of source and target
  std::uint32_t root = 0;
  bool in_place = true;
  bool has_counts = false;   // chunks of the test's own lengths
  bool in_rank_order = true; // RG_CAP_ASCENDING_SUMS

  // Set by lay_out().
  std::vector<std::uint64_t> counts{}, target_counts{};
  rg_collective call{};
  std::uint64_t source_at = 0, target_at = 0, end = 0, cookie = 0; // bytes in the memory

  std::uint64_t element() const { return rg::size_of(what.type); }
  bool is_root(std::uint32_t index) const { return !rg::has_root(what.of.kind) || root == index; }
  bool uses_source(std::uint32_t index) const {
    const bool from_root = what.of.kind == RG_OP_BROADCAST || what.of.kind == RG_OP_SCATTER;
    return what.of.kind != RG_OP_BARRIER && (!from_root || is_root(index));
  }
  bool uses_target(std::uint32_t index) const {
    const bool to_root = what.of.kind == RG_OP_REDUCE || what.of.kind == RG_OP_GATHER;
    return what.of.kind != RG_OP_BARRIER && (!to_root || is_root(index));
  }

  // Chunk `k` of the buffer with all chunks; in an all-to-all, of member `of`'s source.
  rg::chunk chunk(std::uint32_t k, std::uint32_t members, std::uint32_t of = 0) const {
    if (what.of.kind != RG_OP_ALL_TO_ALL) return rg::chunk_of(count, has_counts ? counts.data() : nullptr, k, members);
    if (!has_counts) return rg::equal_chunk(count, k, members);
    rg::chunk c{0, 0};
    for (std::uint32_t i = 0; i <= k; ++i) c = {c.end(), length(of + i, members)};
    return c;
  }
  // Uneven lengths that add up to `count` for any `members` successive indices.
  std::uint64_t length(std::uint32_t i, std::uint32_t members) const {
    i %= members;
    const std::uint64_t third = count / 3;
    return members == 1 ? count : i == 0 ? third : i == 1 ? count - third : 0;
  }

  // Chooses the offsets of the buffers from `at` on, with gaps. Returns the end.
  std::uint64_t lay_out(std::uint64_t at, std::uint32_t index, std::uint32_t members) {
    constexpr std::uint64_t gap = 68; // lets buffers start anywhere in a cache line
    const std::uint32_t kind = what.of.kind;
    if (kind == RG_OP_ALL_TO_ALL) count = count / members * members;
    if (has_counts)
      for (std::uint32_t k = 0; k < members; ++k) {
        counts.push_back(length(kind == RG_OP_ALL_TO_ALL ? index + k : k, members));
        target_counts.push_back(length(k + index, members));
      }
    const rg::chunk own = chunk(index, members, index);
    const std::uint64_t source = !uses_source(index) ? 0 : cuts_target(kind) ? own.count : count;
    const std::uint64_t target = !uses_target(index) ? 0 : cuts_source(kind) ? own.count : count;
    source_at = target_at = at + gap;
    if (in_place && cuts_target(kind) && uses_target(index)) source_at += own.first * element();
    if (in_place && cuts_source(kind) && uses_source(index)) target_at += own.first * element();
    const auto behind = [&](std::uint64_t from, std::uint64_t elements) { return from + elements * element(); };
    if (!in_place) target_at = (behind(source_at, source) + 7) / 8 * 8 + gap;
    end = std::max(behind(source_at, source), behind(target_at, target));
    call = rg::make_versioned<rg_collective>();
    call.kind = kind;
    call.root = root;
    call.reduction = what.reduction;
    call.source = {0, source || uses_source(index) ? what.type : 0, source_at, source};
    call.target = {0, target || uses_target(index) ? what.type : 0, target_at, target};
    call.counts = has_counts ? counts.data() : nullptr;
    call.target_counts = has_counts && kind == RG_OP_ALL_TO_ALL ? target_counts.data() : nullptr;
    return (end + 7) / 8 * 8 + gap;
  }

  void write_source(std::byte* to, std::uint32_t index, std::uint32_t members, std::uint32_t rank) const {
    if (!uses_source(index)) return;
    const std::vector<std::byte> all = elements_of(rank);
    const std::uint64_t first = cuts_target(what.of.kind) ? chunk(index, members).first * element() : 0;
    if (call.source.count > 0) std::memcpy(to, all.data() + first, call.source.count * element());
  }

  // Throws failed if `got` is not the target that this rank must have.
  void verify(const std::byte* got, const std::vector<std::uint32_t>& members, std::uint32_t index) const {
    const auto n = static_cast<std::uint32_t>(members.size());
    const std::uint32_t kind = what.of.kind;
    if (!uses_target(index)) return;
    if (rg::reduces(kind))
      return verify_reduction(got, members, kind == RG_OP_REDUCE_SCATTER ? chunk(index, n) : rg::chunk{0, count});
    if (kind == RG_OP_BROADCAST) return verify_copy(got, 0, members[root], {0, count});
    if (kind == RG_OP_SCATTER) return verify_copy(got, 0, members[root], chunk(index, n));
    std::uint64_t at = 0;
    for (std::uint32_t k = 0; k < n; ++k) { // gather, all-gather, all-to-all
      const rg::chunk part = kind == RG_OP_ALL_TO_ALL ? chunk(index, n, k) : chunk(k, n);
      verify_copy(got + at * element(), at, members[k], part);
      at += part.count;
    }
  }

private:
  // Sums of these depend on their order if the transport promises one; else they are exact in any order.
  template <class T> T number(std::uint32_t rank, std::uint64_t i) const {
    if constexpr (std::is_same_v<T, float>)
      if (in_rank_order && what.reduction == RG_SUM) return term(rank, i);
    return static_cast<T>((i * 7 + rank * 13 + 1) % 31);
  }
  template <class T> void write_numbers(std::vector<std::byte>& to, std::uint32_t rank) const {
    for (std::uint64_t i = 0; i < count; ++i) {
      const T x = number<T>(rank, i);
      std::memcpy(to.data() + i * sizeof x, &x, sizeof x);
    }
  }
  // W(rank).
  std::vector<std::byte> elements_of(std::uint32_t rank) const {
    std::vector<std::byte> all(count * element());
    if (!rg::reduces(what.of.kind)) {
      fill(all.data(), all.size(), rank * 1000 + count % 1000);
      return all;
    }
    switch (what.type) {
    case RG_F64: write_numbers<double>(all, rank); break;
    case RG_I32: write_numbers<std::int32_t>(all, rank); break;
    case RG_I64: write_numbers<std::int64_t>(all, rank); break;
    default: write_numbers<float>(all, rank);
    }
    return all;
  }

  // Built only for a failure, because checks run often.
  std::string element_name(std::uint64_t i) const {
    return fmt::format("{} of {} elements of type {}, {}{}: element {}", what.of.name, count, what.type,
                       in_place ? "in place" : "not in place", has_counts ? ", with counts" : "", i);
  }
  void verify_reduction(const std::byte* got, const std::vector<std::uint32_t>& members, rg::chunk p) const {
    switch (what.type) {
    case RG_F64: return verify_numbers<double>(got, members, p);
    case RG_I32: return verify_numbers<std::int32_t>(got, members, p);
    case RG_I64: return verify_numbers<std::int64_t>(got, members, p);
    default: return verify_numbers<float>(got, members, p);
    }
  }
  template <class T> using bytes_of_a = std::array<std::byte, sizeof(T)>;
  template <class T>
  void verify_numbers(const std::byte* got, const std::vector<std::uint32_t>& members, rg::chunk p) const {
    const std::vector<T> result = numbers_of<T>(got, p.count);
    for (std::uint64_t i = 0; i < p.count; ++i) {
      T all = number<T>(members.front(), p.first + i);
      for (std::size_t k = 1; k < members.size(); ++k) {
        const T x = number<T>(members[k], p.first + i);
        all = what.reduction == RG_MAX ? std::max(all, x) : all + x;
      }
      if (what.reduction == RG_AVERAGE) all /= static_cast<T>(members.size());
      // An average may be a product with the rounded reciprocal: two roundings more.
      const bool close = what.reduction == RG_AVERAGE && std::is_floating_point_v<T>
                             ? std::abs(result[i] - all) <= std::abs(all) * 4 * std::numeric_limits<T>::epsilon()
                             : std::bit_cast<bytes_of_a<T>>(result[i]) == std::bit_cast<bytes_of_a<T>>(all);
      if (!close)
        throw failed(element_name(p.first + i) + (what.reduction == RG_MAX       ? " is not the maximum"
                                                  : what.reduction == RG_AVERAGE ? " is not the average"
                                                  : in_rank_order                ? " is not the sum in rank order"
                                                                                 : " is not the sum"));
    }
  }
  void verify_copy(const std::byte* got, std::uint64_t at, std::uint32_t from, rg::chunk part) const {
    const std::vector<std::byte> theirs = elements_of(from);
    if (part.count > 0 && std::memcmp(got, theirs.data() + part.first * element(), part.count * element()) != 0)
      throw failed(element_name(at) + " or one behind it differs from that of rank " + std::to_string(from));
  }
};

// Begins all collectives, then waits for all. Only their targets may change.
void run_collectives(endpoint& e, std::uint32_t group, const std::vector<std::uint32_t>& members,
                     std::vector<exercise> exercises) {
  const auto index = static_cast<std::uint32_t>(std::find(members.begin(), members.end(), e.rank()) - members.begin());
  const auto n = static_cast<std::uint32_t>(members.size());
  const bool in_rank_order = e.caps().flags & RG_CAP_ASCENDING_SUMS;
  std::uint64_t bytes = 0;
  for (exercise& x : exercises) {
    x.in_rank_order = in_rank_order;
    bytes = x.lay_out(bytes, index, n);
  }
  const memory m = e.allocate(bytes);
  fill(m.data, bytes, 7);
  for (const exercise& x : exercises) x.write_source(m.data + x.source_at, index, n, e.rank());
  std::vector<std::byte> before(m.data, m.data + bytes);
  for (exercise& x : exercises) {
    x.call.group = group;
    x.cookie = e.collective(x.call, m);
  }
  for (const exercise& x : exercises) {
    e.finish(x.cookie);
    x.verify(m.data + x.target_at, members, index);
  }
  // Bytes that may have changed: the targets, and the whole source of a reduce-scatter in place.
  for (const exercise& x : exercises) {
    const bool whole = x.what.of.kind == RG_OP_REDUCE_SCATTER && x.in_place;
    const std::uint64_t from = whole ? x.source_at : x.target_at;
    const std::uint64_t length = (whole ? x.call.source : x.call.target).count * x.element();
    std::copy_n(m.data + from, length, before.begin() + static_cast<std::ptrdiff_t>(from));
  }
  require(std::equal(before.begin(), before.end(), m.data), "a collective changes bytes outside its target");
}

// Sizes that do not divide evenly among the members, where some chunks are empty; in place where that is possible and
// not, with counts and without.
std::vector<exercise> of_all_sizes(const offer& o, std::uint32_t members) {
  std::vector<exercise> all;
  if (o.of.kind == RG_OP_BARRIER) return {{.what = o, .count = 0}};
  const bool chunks = cuts_source(o.of.kind) || cuts_target(o.of.kind) || o.of.kind == RG_OP_ALL_TO_ALL;
  const bool plain = o.type == RG_F32 && o.reduction <= RG_SUM;
  const std::vector<std::uint64_t> counts =
      plain ? std::vector<std::uint64_t>{0, 1, 2, 15, 16, 17, 40, 1000, 4097, 65536, 300'007}
            : std::vector<std::uint64_t>{1, 33, 1023, 100'003};
  for (const std::uint64_t count : counts)
    for (const bool in_place : {true, false})
      for (const bool has_counts : {false, true}) {
        if ((in_place && o.of.kind == RG_OP_ALL_TO_ALL) || (has_counts && !chunks)) continue;
        all.push_back({.what = o,
                       .count = count,
                       .root = static_cast<std::uint32_t>(all.size() % members),
                       .in_place = in_place,
                       .has_counts = has_counts});
      }
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
      {"barrier", "a barrier ends when all ranks have begun it", barrier, false, true},
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
