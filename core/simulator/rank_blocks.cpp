// SPDX-License-Identifier: Apache-2.0
#include "rank_blocks.hpp"

#include "simulation.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

namespace regatta {
namespace {

using numbers = std::vector<std::uint32_t>;

// Returns numbers by rank for each kind of shared thing: links, cores, hosts. Ranks with equal numbers share one.
std::vector<numbers> shared_by_ranks(const simulation_setup& s, std::uint32_t symmetry, const cluster_layout& layout) {
  std::vector<numbers> all;
  // If all ranks are on one link, no message takes it: network_options::inside is for each rank.
  if (const numbers& links = links_of(s, layout);
      !s.network.links.empty() && std::ranges::adjacent_find(links, std::not_equal_to<>()) != links.end())
    all.push_back(links);
  if (!s.cores.groups.empty()) all.push_back(s.cores.group_of);
  if (symmetry == RG_SYMMETRY_HOSTS) all.push_back(layout.host_of);
  return all;
}

// Returns by rank the first rank of its block.
numbers first_of_blocks(const std::vector<numbers>& shared, std::uint32_t ranks) {
  numbers first(ranks);
  for (std::uint32_t r = 0; r < ranks; ++r) first[r] = r;
  const auto root = [&](std::uint32_t r) {
    while (first[r] != r) r = first[r] = first[first[r]];
    return r;
  };
  for (const numbers& of : shared) {
    std::map<std::uint32_t, std::uint32_t> seen; // the first rank that has a number
    for (std::uint32_t r = 0; r < ranks; ++r) {
      const std::uint32_t a = root(seen.try_emplace(of[r], r).first->second), b = root(r);
      first[std::max(a, b)] = std::min(a, b);
    }
  }
  for (std::uint32_t r = 0; r < ranks; ++r) first[r] = root(r);
  return first;
}

// The properties by which ranks differ: of the role, then those of the link and the cores, as the number of the first
// equal ones; the last one is of a delayed rank.
using kind_of_rank = std::tuple<bool, bool, std::uint32_t, std::size_t, std::size_t, std::uint32_t>;

kind_of_rank kind_of(const simulation_setup& s, const cluster_layout& layout, std::uint32_t rank) {
  const bool worker = rank < layout.workers;
  const bool server = std::ranges::find(layout.server_rank, rank) != layout.server_rank.end();
  const auto first_equal = [](const auto& all, std::uint32_t number) {
    return static_cast<std::size_t>(std::ranges::find(all, all[number]) - all.begin());
  };
  const std::size_t link = s.network.links.empty() ? 0 : first_equal(s.network.links, links_of(s, layout)[rank]),
                    cores = s.cores.groups.empty() ? 0 : first_equal(s.cores.groups, s.cores.group_of[rank]);
  const std::uint32_t computes = worker && !s.compute_kinds.empty() ? s.compute_kinds[rank] : 0;
  const std::uint64_t delay = rank == 0 ? s.late_ns : rank == 1 ? s.straggler_ns : 0;
  return {worker, server, computes, link, cores, delay ? rank + 1 : 0};
}

} // namespace

const numbers& links_of(const simulation_setup& s, const cluster_layout& layout) {
  return s.link_of.empty() ? layout.host_of : s.link_of;
}

rank_blocks::rank_blocks(const simulation_setup& s, std::uint32_t symmetry, const cluster_layout& layout)
    : block_of_(layout.size()), place_(layout.size()) {
  const std::vector<numbers> shared = shared_by_ranks(s, symmetry, layout);
  const numbers first = first_of_blocks(shared, layout.size());
  for (std::uint32_t r = 0; r < layout.size(); ++r) {
    if (first[r] == r) {
      block_of_[r] = size();
      ranks_.emplace_back();
    }
    block_of_[r] = block_of_[first[r]];
    place_[r] = static_cast<std::uint32_t>(ranks_[block_of_[r]].size());
    ranks_[block_of_[r]].push_back(r);
  }
  using kind_of_block = std::pair<std::vector<kind_of_rank>, numbers>; // of its ranks, and who shares what
  std::map<kind_of_block, std::uint32_t> kinds;
  for (std::uint32_t b = 0; b < size(); ++b) {
    kind_of_block kind;
    for (const std::uint32_t r : ranks_[b]) {
      kind.first.push_back(kind_of(s, layout, r));
      for (const numbers& of : shared)
        kind.second.push_back(place_[*std::ranges::find(ranks_[b], of[r], [&](std::uint32_t x) { return of[x]; })]);
    }
    first_like_.push_back(kinds.try_emplace(std::move(kind), b).first->second);
  }
}

bool rank_blocks::regular() const {
  const std::size_t k = ranks_.front().size();
  for (std::uint32_t r = 0; r < block_of_.size(); ++r)
    if (block_of_[r] != r / k || first_like_[block_of_[r]] != 0) return false;
  return true;
}

} // namespace regatta
