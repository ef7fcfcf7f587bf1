// SPDX-License-Identifier: Apache-2.0
#include "check/transport/collective_exercise.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include <fmt/format.h>

namespace regatta::conformance {

bool cuts_source(std::uint32_t kind) {
  return kind == RG_OP_REDUCE_SCATTER || kind == RG_OP_SCATTER;
}
bool cuts_target(std::uint32_t kind) {
  return kind == RG_OP_ALL_GATHER || kind == RG_OP_GATHER;
}

float rounded(float x, const wire_type& to) {
  int exponent = 0;
  std::frexp(x, &exponent);
  const int step = std::max(exponent, to.least_exponent + 1) - to.digits; // subnormal values are equally far apart
  return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(static_cast<double>(x), -step)), step));
}

std::vector<offer> all_offers() {
  std::vector<offer> all;
  for (const collective_kind& k : collective_kinds) {
    const bool reduces = rg::reduces(k.kind);
    std::vector<std::uint32_t> reductions{0};
    if (reduces) reductions = {RG_SUM, RG_AVERAGE, RG_MAX};
    for (const std::uint32_t reduction : reductions) {
      for (const std::uint32_t type : {RG_F32, RG_F64, RG_I32, RG_I64})
        if (reduces || type == RG_F32) all.push_back({k, type, reduction});
      if (!reduces) all.push_back({k, RG_U8});
      for (const wire_type& w : wire_types)
        if (k.kind != RG_OP_BARRIER) all.push_back({k, RG_F32, reduction, &w});
    }
  }
  return all;
}

namespace {

template <class T> std::vector<T> numbers_of(const std::byte* from, std::uint64_t count) {
  std::vector<T> all(count);
  if (count > 0) std::memcpy(all.data(), from, count * sizeof(T));
  return all;
}

} // namespace

bool exercise::uses_source(std::uint32_t index) const {
  const bool from_root = what.of.kind == RG_OP_BROADCAST || what.of.kind == RG_OP_SCATTER;
  return what.of.kind != RG_OP_BARRIER && (!from_root || is_root(index));
}
bool exercise::uses_target(std::uint32_t index) const {
  const bool to_root = what.of.kind == RG_OP_REDUCE || what.of.kind == RG_OP_GATHER;
  return what.of.kind != RG_OP_BARRIER && (!to_root || is_root(index));
}

// Chunk `k` of the buffer with all chunks; in an all-to-all, of member `of`'s source.
rg::chunk exercise::chunk(std::uint32_t k, std::uint32_t members, std::uint32_t of) const {
  if (what.of.kind != RG_OP_ALL_TO_ALL) return rg::chunk_of(count, has_counts ? counts.data() : nullptr, k, members);
  if (!has_counts) return rg::equal_chunk(count, k, members);
  rg::chunk c{0, 0};
  for (std::uint32_t i = 0; i <= k; ++i) c = {c.end(), length(of + i, members)};
  return c;
}
// Uneven lengths that add up to `count` for any `members` successive indices.
std::uint64_t exercise::length(std::uint32_t i, std::uint32_t members) const {
  i %= members;
  const std::uint64_t third = count / 3;
  return members == 1 ? count : i == 0 ? third : i == 1 ? count - third : 0;
}

std::uint64_t exercise::lay_out(std::uint64_t at, std::uint32_t index, std::uint32_t members) {
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
  call.wire = what.wire ? what.wire->type : 0;
  call.source = {0, source || uses_source(index) ? what.type : 0, source_at, source};
  call.target = {0, target || uses_target(index) ? what.type : 0, target_at, target};
  call.counts = has_counts ? counts.data() : nullptr;
  call.target_counts = has_counts && kind == RG_OP_ALL_TO_ALL ? target_counts.data() : nullptr;
  return (end + 7) / 8 * 8 + gap;
}

void exercise::write_source(std::byte* to, std::uint32_t index, std::uint32_t members, std::uint32_t rank) const {
  if (!uses_source(index)) return;
  const std::vector<std::byte> all = elements_of(rank);
  const std::uint64_t first = cuts_target(what.of.kind) ? chunk(index, members).first * element() : 0;
  if (call.source.count > 0) std::memcpy(to, all.data() + first, call.source.count * element());
}

void exercise::verify(const std::byte* got, const std::vector<std::uint32_t>& members, std::uint32_t index) const {
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

// Without a wire type, sums of these depend on their order if the transport promises one; else they are exact in any
// order. With a wire type: from 0.5 to 2, which all types can hold, and also ties between two of their values.
template <class T> T exercise::number(std::uint32_t rank, std::uint64_t i) const {
  if constexpr (std::is_same_v<T, float>) {
    if (what.wire) {
      const std::uint64_t x = ((rank + 1) * 0x9e3779b97f4a7c15 + i + count) * 0xbf58476d1ce4e5b9;
      const auto ties = static_cast<std::uint64_t>(what.wire->digits); // bits of a tie, the leading one not included
      const std::uint64_t fraction = x >> 41, exact = 23 - ties;
      return std::ldexp(1.0F + static_cast<float>(x % 8 ? fraction : fraction >> exact << exact) * 0x1p-23F,
                        x % 16 < 8 ? -1 : 0);
    }
    if (in_rank_order && what.reduction == RG_SUM) return term(rank, i);
  }
  return static_cast<T>((i * 7 + rank * 13 + 1) % 31);
}
template <class T> void exercise::write_numbers(std::vector<std::byte>& to, std::uint32_t rank) const {
  for (std::uint64_t i = 0; i < count; ++i) {
    const T x = number<T>(rank, i);
    std::memcpy(to.data() + i * sizeof x, &x, sizeof x);
  }
}
// W(rank).
std::vector<std::byte> exercise::elements_of(std::uint32_t rank) const {
  std::vector<std::byte> all(count * element());
  if (!rg::reduces(what.of.kind) && !what.wire) {
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
std::string exercise::name() const {
  return fmt::format("{} of {} elements of type {}{}, {}{}", what.of.name, count, what.type,
                     what.wire ? fmt::format(" with wire type {}", what.wire->name) : "",
                     in_place ? "in place" : "not in place", has_counts ? ", with counts" : "");
}
std::string exercise::element_name(std::uint64_t i) const {
  return fmt::format("{}: element {}", name(), i);
}
void exercise::verify_reduction(const std::byte* got, const std::vector<std::uint32_t>& members, rg::chunk p) const {
  if (what.wire) return verify_rounded(got, members, p);
  switch (what.type) {
  case RG_F64: return verify_numbers<double>(got, members, p);
  case RG_I32: return verify_numbers<std::int32_t>(got, members, p);
  case RG_I64: return verify_numbers<std::int64_t>(got, members, p);
  default: return verify_numbers<float>(got, members, p);
  }
}
template <class T> using bytes_of_a = std::array<std::byte, sizeof(T)>;
template <class T>
void exercise::verify_numbers(const std::byte* got, const std::vector<std::uint32_t>& members, rg::chunk p) const {
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

void exercise::verify_rounded(const std::byte* got, const std::vector<std::uint32_t>& members, rg::chunk p) const {
  constexpr std::uint64_t many = 4000; // elements over which the errors of unbiased roundings cancel
  const std::vector<float> result = numbers_of<float>(got, p.count);
  const double u = std::ldexp(1.0, -what.wire->digits), n = static_cast<double>(members.size());
  const bool averages = what.reduction == RG_AVERAGE;
  double bias = 0;
  for (std::uint64_t i = 0; i < p.count; ++i) {
    double sum = 0;
    float greatest = 0;
    for (const std::uint32_t m : members) {
      const float x = rounded(number<float>(m, p.first + i), *what.wire);
      sum += static_cast<double>(x);
      greatest = std::max(greatest, x);
    }
    if (what.reduction == RG_MAX) {
      if (result[i] != greatest)
        throw failed(fmt::format("{} is {}; expected {}, the maximum of the rounded elements",
                                 element_name(p.first + i), result[i], greatest));
      continue;
    }
    if (averages) sum /= n;
    const double error = (static_cast<double>(result[i]) - sum) / (u * sum);
    if (!(std::abs(error) <= n + (averages ? 2 : 1)))
      throw failed(fmt::format("{} is {}; expected {}, the {} of the rounded elements, or at most {:.2g} from it",
                               element_name(p.first + i), result[i], sum, averages ? "average" : "sum",
                               (n + (averages ? 2 : 1)) * u * sum));
    bias += error / static_cast<double>(p.count);
  }
  if (p.count >= many && std::abs(bias) > 0.2)
    throw failed(
        fmt::format("{}: its elements differ from the sums of the rounded ones by {:+.2f} u in the mean, where "
                    "u = 2^-{} is the largest relative error of a rounding; expected at most 0.2 u, because "
                    "the wire type rounds to nearest, ties to even",
                    name(), bias, what.wire->digits));
}

void exercise::verify_copy(const std::byte* got, std::uint64_t at, std::uint32_t from, rg::chunk part) const {
  if (what.wire) {
    const std::vector<float> result = numbers_of<float>(got, part.count);
    for (std::uint64_t i = 0; i < part.count; ++i)
      if (const float x = rounded(number<float>(from, part.first + i), *what.wire); result[i] != x)
        throw failed(fmt::format("{} is {}; expected {}, that of rank {} rounded to nearest, ties to even",
                                 element_name(at + i), result[i], x, from));
    return;
  }
  const std::vector<std::byte> theirs = elements_of(from);
  if (part.count > 0 && std::memcmp(got, theirs.data() + part.first * element(), part.count * element()) != 0)
    throw failed(element_name(at) + " or one behind it differs from that of rank " + std::to_string(from));
}

std::vector<exercise> of_all_sizes(const offer& o, std::uint32_t members) {
  std::vector<exercise> all;
  if (o.of.kind == RG_OP_BARRIER) return {{.what = o, .count = 0}};
  const bool chunks = cuts_source(o.of.kind) || cuts_target(o.of.kind) || o.of.kind == RG_OP_ALL_TO_ALL;
  const bool plain = o.type == RG_F32 && o.reduction <= RG_SUM && !o.wire;
  const std::vector<std::uint64_t> counts =
      plain    ? std::vector<std::uint64_t>{0, 1, 2, 15, 16, 17, 40, 1000, 4097, 65536, 300'007}
      : o.wire ? std::vector<std::uint64_t>{0, 1, 33, 1023, 16'389}
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

namespace {

std::uint64_t fingerprint(const std::byte* data, std::uint64_t bytes) {
  std::uint64_t h = 0xcbf2'9ce4'8422'2325; // FNV-1a
  for (std::uint64_t i = 0; i < bytes; ++i) h = (h ^ static_cast<std::uint8_t>(data[i])) * 0x100'0000'01b3;
  return h;
}

// Exact sums are verified on each member; rounded ones could be within their bounds and differ all the same.
bool needs_comparison(const exercise& x) {
  return x.what.of.kind == RG_OP_ALL_REDUCE && (x.what.wire || x.what.reduction == RG_AVERAGE);
}

// The other members send fingerprints of their results to the first one.
void compare_results(endpoint& e, const memory& m, const std::vector<std::uint32_t>& members,
                     const std::vector<exercise>& exercises) {
  std::vector<const exercise*> compared;
  for (const exercise& x : exercises)
    if (needs_comparison(x)) compared.push_back(&x);
  if (compared.empty() || members.size() == 1 || e.caps().p2p == RG_P2P_NONE) return;
  const std::uint64_t bytes = compared.size() * sizeof(std::uint64_t);
  std::vector<std::uint64_t> mine, theirs(compared.size());
  for (const exercise* x : compared) mine.push_back(fingerprint(m.data + x->target_at, x->target_bytes()));
  const memory letter = e.allocate(bytes);
  std::memcpy(letter.data, mine.data(), bytes);
  if (e.rank() != members.front()) {
    e.finish(e.send(members.front(), 0, letter, 0, bytes));
    return;
  }
  for (const std::uint32_t other : members) {
    if (other == e.rank()) continue;
    e.finish(e.recv(other, 0, letter, 0, bytes));
    std::memcpy(theirs.data(), letter.data, bytes);
    for (std::size_t i = 0; i < compared.size(); ++i)
      require(theirs[i] == mine[i],
              fmt::format("{}: the results of ranks {} and {} differ", compared[i]->name(), e.rank(), other));
  }
}

} // namespace

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
  compare_results(e, m, members, exercises);
  // Bytes that may have changed: the targets, and the whole source of a reduce-scatter in place.
  for (const exercise& x : exercises) {
    const bool whole = x.what.of.kind == RG_OP_REDUCE_SCATTER && x.in_place;
    const std::uint64_t from = whole ? x.source_at : x.target_at;
    const std::uint64_t length = whole ? x.call.source.count * x.element() : x.target_bytes();
    std::copy_n(m.data + from, length, before.begin() + static_cast<std::ptrdiff_t>(from));
  }
  require(std::equal(before.begin(), before.end(), m.data), "a collective changes bytes outside its target");
}

} // namespace regatta::conformance
