// SPDX-License-Identifier: Apache-2.0
#include "native_collectives.hpp"

#include "memory/conversion.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>

#include <fmt/format.h>
#include <regatta/collectives.hpp>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

using bytes_of_member = std::vector<std::byte>;

void round(std::uint32_t wire, std::span<float> values) {
  if (wire) conversion::round(wire == RG_BF16 ? conversion::half::bf16 : conversion::half::fp16, values);
}
void round(std::uint32_t wire, bytes_of_member& elements) {
  if (wire) round(wire, {reinterpret_cast<float*>(elements.data()), elements.size() / sizeof(float)});
}

// Summands are added in ascending order of rank. `sources`: all members' elements.
std::vector<float> reduced(const std::vector<bytes_of_member>& sources, std::uint32_t reduction, std::uint64_t count) {
  std::vector<float> all(count);
  for (std::size_t m = 0; m < sources.size(); ++m)
    for (std::uint64_t i = 0; i < count && !sources[m].empty(); ++i) {
      float x;
      std::memcpy(&x, sources[m].data() + i * sizeof x, sizeof x);
      all[i] = m == 0 ? x : reduction == RG_MAX ? std::max(all[i], x) : all[i] + x;
    }
  if (reduction == RG_AVERAGE)
    for (float& x : all) x /= static_cast<float>(sources.size());
  return all;
}

void write_results(const native_collectives::joined& g) {
  // Sources are copied first, because collectives may be in place.
  std::vector<bytes_of_member> sources;
  for (const auto& [who, what] : g) {
    const auto* first = static_cast<const std::byte*>(what.source_address);
    sources.emplace_back(first, first + (first ? rg::bytes_of(what.source) : 0));
    round(what.wire, sources.back());
  }
  const std::uint64_t n = g.size();
  for (std::uint64_t m = 0; m < n; ++m) {
    const rg_collective& c = g[m].second;
    auto* const to = static_cast<std::byte*>(c.target_address);
    if (!to) continue;                                                                    // a ghost, or unused
    const std::uint64_t element = std::max<std::uint64_t>(rg::size_of(c.target.type), 1); // 0: not a type
    const auto put = [&](std::uint64_t at, const bytes_of_member& from, rg::chunk part) {
      std::memcpy(to + at * element, from.data() + part.first * element, part.count * element);
    };
    const auto whole = [&](std::uint64_t k) { return rg::chunk{0, sources[k].size() / element}; };
    switch (c.kind) {
    case RG_OP_ALL_REDUCE:
    case RG_OP_REDUCE:
    case RG_OP_REDUCE_SCATTER: {
      std::vector<float> all = reduced(sources, c.reduction, c.source.count);
      round(c.wire, all);
      const bool cut = c.kind == RG_OP_REDUCE_SCATTER;
      const rg::chunk own = cut ? rg::chunk_of(c.source.count, c.counts, m, n) : rg::chunk{0, c.source.count};
      if (cut && to == static_cast<const std::byte*>(c.source_address) + own.first * element) // else undefined
        std::fill_n(static_cast<float*>(const_cast<void*>(c.source_address)), c.source.count,
                    std::numeric_limits<float>::quiet_NaN());
      if (c.kind != RG_OP_REDUCE || c.root == m) std::memcpy(to, all.data() + own.first, own.count * element);
      break;
    }
    case RG_OP_BROADCAST: put(0, sources[c.root], whole(c.root)); break;
    case RG_OP_SCATTER: put(0, sources[c.root], rg::chunk_of(whole(c.root).count, c.counts, m, n)); break;
    case RG_OP_ALL_GATHER:
    case RG_OP_GATHER:
      for (std::uint64_t k = 0; k < n; ++k)
        put(rg::chunk_of(c.target.count, c.counts, k, n).first, sources[k], whole(k));
      break;
    default: // RG_OP_ALL_TO_ALL; a barrier has no target
      for (std::uint64_t k = 0; k < n; ++k) {
        const rg_collective& other = g[k].second;
        const auto from = c.counts ? rg::chunk_of(0, other.counts, m, n) : rg::equal_chunk(other.source.count, m, n);
        put(c.counts ? rg::chunk_of(0, c.target_counts, k, n).first : rg::equal_chunk(c.target.count, k, n).first,
            sources[k], from);
      }
    }
  }
}

} // namespace

std::uint32_t native_collectives::group(const std::vector<std::uint32_t>& members) {
  const auto found = std::ranges::find(groups_, members);
  const auto number = static_cast<std::uint32_t>(found - groups_.begin());
  if (found == groups_.end()) groups_.push_back(members);
  return number;
}

std::uint32_t native_collectives::join(std::uint32_t rank, const rg_collective& c) {
  const std::pair key(c.group, begun_[{c.group, rank}]++);
  const auto [place, first] = open_.try_emplace(key, next_);
  if (first) pending_[next_++].group = c.group;
  const std::uint32_t number = place->second;
  joined& members = pending_[number].members;
  if (!members.empty() && members.front().second.kind != c.kind)
    throw std::logic_error("the members of a group call collectives in different orders");
  members.push_back({rank, c});
  if (members.size() < groups_[c.group].size()) return UINT32_MAX;
  open_.erase(place);
  std::ranges::sort(members, {}, [](const auto& m) { return m.first; });
  return number;
}

std::pair<std::uint64_t, std::uint64_t> native_collectives::ring_of(std::uint32_t number) const {
  const joined& members = pending_.at(number).members;
  const rg_collective& c = members.front().second;
  std::uint64_t bytes = 0;
  for (const auto& [who, what] : members)
    bytes = std::max({bytes, rg::bytes_of(what.source), rg::bytes_of(what.target)});
  if (c.wire) bytes /= sizeof(float) / sizeof(std::uint16_t);
  return {(c.kind == RG_OP_ALL_REDUCE ? 2 : 1) * (members.size() - 1), bytes};
}

std::uint64_t native_collectives::ns(std::uint32_t number, double bytes_per_ns, std::uint64_t latency_ns) const {
  const auto [messages, bytes] = ring_of(number);
  const auto n = static_cast<double>(pending_.at(number).members.size());
  return messages * (static_cast<std::uint64_t>(static_cast<double>(bytes) / n / bytes_per_ns) + latency_ns);
}

void native_collectives::count(std::uint32_t number,
                               const std::function<void(std::uint32_t, std::uint64_t)>& to) const {
  const auto [messages, bytes] = ring_of(number);
  const joined& members = pending_.at(number).members;
  for (const auto& [who, what] : members) to(who, messages * bytes / members.size());
}

native_collectives::joined native_collectives::finish(std::uint32_t number) {
  joined members = std::move(pending_.at(number).members);
  pending_.erase(number);
  write_results(members);
  return members;
}

void native_collectives::append_waits(std::multimap<std::uint32_t, std::string>& to) const {
  for (const auto& [number, p] : pending_)
    for (const auto& [who, what] : p.members)
      to.emplace(who, fmt::format("for the other members of a collective, {} of {} have begun it", p.members.size(),
                                  groups_[p.group].size()));
}

} // namespace regatta
