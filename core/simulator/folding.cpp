// SPDX-License-Identifier: Apache-2.0
#include "folding.hpp"

#include "base/failure.hpp"
#include "simulation.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

namespace regatta {
namespace {

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// In bytes: lengths of messages that differ by no more are of buffers that cannot be cut into equal parts.
constexpr std::uint64_t longest_chunk = 16 * sizeof(double);

// The properties by which ranks of one role differ.
using kind_of_rank = std::tuple<bool, bool, std::uint32_t, std::size_t, std::size_t, std::uint64_t>;

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
  return {worker, server, computes, link, cores, delay ? (rank + 1) : 0};
}

bool all_alike(const simulation_setup& s) {
  const auto equal = [](const auto& all) {
    return std::ranges::adjacent_find(all, std::not_equal_to<>()) == all.end();
  };
  return equal(s.compute_kinds) && equal(s.network.links) && equal(s.cores.groups) && !s.late_ns && !s.straggler_ns;
}

} // namespace

const std::vector<std::uint32_t>& links_of(const simulation_setup& s, const cluster_layout& layout) {
  return s.link_of.empty() ? layout.host_of : s.link_of;
}

std::string folded_ranks::obstacle(const simulation_setup& s, const rg_plan& plan, const cluster_layout& layout) {
  const bool classes = plan.symmetry == RG_SYMMETRY_CLASSES;
  if (plan.symmetry == RG_SYMMETRY_NONE) return fmt::format("strategy {} declares no symmetry", s.strategy);
  if (!s.ghosts) return "ranks have bytes";
  if (s.table_rows || !s.tables.empty()) return "the model has sparse tables";
  if (!s.network.eager) return "the transport is not eager";
  if (s.network.uneven) return "latencies differ";
  if (s.network.collectives) return "the transport has native collectives";
  if (!s.network.tiers.empty()) return "switches have tiers";
  if (std::ranges::any_of(s.network.links, [](const network_link& l) { return l.jitter_ns > 0; }))
    return "links have jitter";
  if (s.stays || s.stop_at || s.resume) return "the run stops or resumes";
  const auto shared = [](std::vector<std::uint32_t> used) {
    std::ranges::sort(used);
    return std::ranges::adjacent_find(used) != used.end();
  };
  if (!s.network.links.empty() && shared(links_of(s, layout))) return "several ranks share a link";
  if (!s.cores.groups.empty() && shared(s.cores.group_of)) return "several ranks share cores";
  if (classes && s.network.order == link_order::in_turn) return "links serve the messages of a time in turn";
  if (!classes && !all_alike(s)) return "workers differ";
  return {};
}

folded_ranks::folded_ranks(const simulation_setup& s, const rg_plan& plan, const cluster_layout& layout)
    : strategy_(s.strategy), symmetry_(plan.symmetry), workers_(s.workers), first_of_(layout.size()),
      second_of_(layout.size()), others_(layout.size()) {
  std::map<kind_of_rank, std::uint32_t> first;
  std::map<std::uint32_t, std::vector<std::uint32_t>> members;
  for (std::uint32_t r = 0; r < layout.size(); ++r) {
    first_of_[r] = symmetry_ == RG_SYMMETRY_CLASSES ? first.try_emplace(kind_of(s, layout, r), r).first->second : 0;
    members[first_of_[r]].push_back(r);
  }
  for (auto& [p, all] : members) {
    second_of_[p] = s.fold == folding::checked ? all.back() : p;
    if (second_of_[p] != p) {
      checks_[p].first.rank = p;
      checks_[p].second.rank = second_of_[p];
      all.pop_back();
    }
    others_[p].assign(all.begin() + 1, all.end());
  }
  for (std::uint32_t r = 0; r < layout.size(); ++r)
    if (is_simulated(r)) simulated_.push_back(r);
}

void folded_ranks::append_copies(std::uint32_t from, std::uint32_t to, pairs& out) const {
  if (first_of_[from] != from) return; // the first member stands for the others
  if (symmetry_ == RG_SYMMETRY_CLASSES) {
    if (is_simulated(to))
      for (const std::uint32_t r : others_[from]) out.emplace_back(r, to);
    else if (first_of_[to] == from)
      out.emplace_back(to, from);
    return;
  }
  for (const std::uint32_t q : simulated_) {
    const std::uint32_t r = symmetry_ == RG_SYMMETRY_ROTATION ? (q + workers_ - to) % workers_ : q ^ to;
    if (!is_simulated(r)) out.emplace_back(r, q);
  }
}

// Returns which rank is to the first member what `rank` is to the second; with `back` the reverse.
std::uint32_t folded_ranks::renamed(std::uint32_t rank, std::uint32_t first, std::uint32_t second, bool back) const {
  if (symmetry_ == RG_SYMMETRY_ROTATION) return (rank + (back ? second : workers_ - second)) % workers_;
  if (symmetry_ == RG_SYMMETRY_XOR) return rank ^ second;
  return rank == first ? second : rank == second ? first : rank;
}

void folded_ranks::sent(std::uint64_t now, std::uint32_t from, std::uint32_t to, std::uint32_t lane,
                        std::uint64_t bytes) {
  const auto found = checks_.find(first_of_[from]);
  if (found == checks_.end()) return;
  pair_of_members& p = found->second;
  const bool is_first = from == p.first.rank;
  history& h = is_first ? p.first : p.second;
  const std::uint32_t peer = is_first ? to : renamed(to, p.first.rank, p.second.rank);
  if (h.times.empty() || h.times.back().time != now)
    h.times.push_back({.time = now, .bytes = bytes, .to = to, .lane = lane});
  // Lengths may differ by a chunk: an empty message is all that can be told from another one.
  h.times.back().count += 1;
  h.times.back().digest += mixed(mixed(std::uint64_t{peer} << 32 | lane) + (bytes != 0));
  auto& [count, sum] = h.sums[{peer, lane}];
  count += 1;
  sum += bytes;
}

std::uint64_t folded_ranks::length(std::uint64_t message, std::uint64_t receive) {
  if (!message || message == receive || std::max(message, receive) - std::min(message, receive) > longest_chunk)
    return message;
  rounded_ = true;
  return receive;
}

folded_ranks::pairs folded_ranks::members() const {
  pairs all;
  for (const auto& [number, p] : checks_) all.emplace_back(p.first.rank, p.second.rank);
  return all;
}

void folded_ranks::refuse(const pair_of_members& p, const std::string& first, const std::string& second) const {
  throw failure(exit_code::plugin,
                fmt::format("strategy {} says that ranks {} and {} are alike (rg_plan.symmetry), but rank {} sends {}, "
                            "and rank {} sends {}: declare RG_SYMMETRY_NONE, or do not fold",
                            strategy_, p.first.rank, p.second.rank, p.first.rank, first, p.second.rank, second));
}

void folded_ranks::require_equal_sums(const pair_of_members& p) const {
  using sum = std::pair<std::uint64_t, std::uint64_t>;
  const auto require = [&](const history& a, const history& b) {
    for (const auto& entry : a.sums) {
      const auto& [peer, lane] = entry.first;
      const auto found = b.sums.find(entry.first);
      const sum x = entry.second, y = found == b.sums.end() ? sum() : found->second;
      const std::uint64_t more = std::max(x.second, y.second) - std::min(x.second, y.second);
      if (x.first == y.first && more <= x.first * longest_chunk) continue;
      const auto text = [](const sum& z, std::uint32_t to, std::uint32_t on) {
        return fmt::format("{} messages of {} bytes to rank {} on lane {}", z.first, z.second, to, on);
      };
      const bool in_order = &a == &p.first;
      refuse(p, text(in_order ? x : y, peer, lane),
             text(in_order ? y : x, renamed(peer, p.first.rank, p.second.rank, true), lane));
    }
  };
  require(p.first, p.second);
  require(p.second, p.first);
}

void folded_ranks::require_equal_times(const pair_of_members& p) const {
  const auto &a = p.first.times, &b = p.second.times;
  const auto text = [](const std::vector<sending>& all, std::size_t k) {
    return k < all.size() ? fmt::format("{} messages at {} ns, the first of {} bytes to rank {} on lane {}",
                                        all[k].count, all[k].time, all[k].bytes, all[k].to, all[k].lane)
                          : std::string("nothing more");
  };
  const auto equal = [](const sending& x, const sending& y) {
    return x.time == y.time && x.count == y.count && x.digest == y.digest;
  };
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i)
    if (i >= a.size() || i >= b.size() || !equal(a[i], b[i])) refuse(p, text(a, i), text(b, i));
}

void folded_ranks::require_equal_members() const {
  for (const auto& [number, p] : checks_) {
    require_equal_sums(p);
    if (!rounded_) require_equal_times(p);
  }
}

} // namespace regatta
