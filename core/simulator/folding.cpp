// SPDX-License-Identifier: Apache-2.0
#include "folding.hpp"

#include "base/failure.hpp"
#include "simulation.hpp"

#include <algorithm>

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

} // namespace

std::string folded_ranks::obstacle(const simulation_setup& s, const rg_plan& plan, const cluster_layout& layout) {
  if (plan.symmetry == RG_SYMMETRY_NONE) return fmt::format("strategy {} declares no symmetry", s.strategy);
  if (plan.symmetry > RG_SYMMETRY_HOSTS)
    return fmt::format("strategy {} declares a symmetry that is unknown ({})", s.strategy, plan.symmetry);
  if (!s.ghosts) return "ranks have bytes";
  if (s.table_rows || !s.tables.empty()) return "the model has sparse tables";
  if (!s.network.eager) return "the transport is not eager";
  if (s.network.uneven) return "latencies differ";
  if (s.network.collectives) return "the transport has native collectives";
  if (!s.network.tiers.empty()) return "switches have tiers";
  if (std::ranges::any_of(s.network.links, [](const network_link& l) { return l.jitter_ns > 0; }))
    return "links have jitter";
  if (s.stays || s.stop_at || s.resume) return "the run stops or resumes";
  const bool classes = plan.symmetry == RG_SYMMETRY_CLASSES;
  const rank_blocks blocks(s, plan.symmetry, layout);
  if (blocks.size() == 1 && blocks.several_ranks()) return "all ranks share links or cores";
  if ((classes || blocks.several_ranks()) && s.network.order == link_order::in_turn)
    return "links serve the messages of a time in turn";
  const auto beside_workers = [&](std::uint32_t server) {
    const std::vector<std::uint32_t>& all = blocks.ranks(blocks.block_of(server));
    return all.size() > 1 && all.front() < layout.workers;
  };
  // A server adds all gradients to those of worker 0, which come earlier to the server on its host than to others.
  if (s.network.add_ns_per_byte > 0 && std::ranges::any_of(layout.server_rank, beside_workers))
    return "servers are on hosts of workers, and a receive that adds takes longer";
  if (!classes && !blocks.regular()) return blocks.several_ranks() ? "hosts differ" : "workers differ";
  return {};
}

folded_ranks::folded_ranks(const simulation_setup& s, const rg_plan& plan, const cluster_layout& layout)
    : strategy_(s.strategy), symmetry_(plan.symmetry), blocks_(s, plan.symmetry, layout), second_(blocks_.size()),
      others_(blocks_.size()) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> members;
  for (std::uint32_t b = 0; b < blocks_.size(); ++b) members[blocks_.first_like(b)].push_back(b);
  for (auto& [first, all] : members) {
    second_[first] = s.fold == folding::checked ? all.back() : first;
    if (second_[first] != first) {
      for (const std::uint32_t p : blocks_.ranks(first)) {
        checks_[p].first.rank = p;
        checks_[p].second.rank = blocks_.at_place_of(p, second_[first]);
      }
      all.pop_back();
    }
    others_[first].assign(all.begin() + 1, all.end());
  }
  for (std::uint32_t r = 0; r < layout.size(); ++r)
    if (is_simulated(r)) simulated_.push_back(r);
}

void folded_ranks::append_copies(std::uint32_t from, std::uint32_t to, pairs& out) const {
  const std::uint32_t a = blocks_.block_of(from), x = blocks_.block_of(to);
  if (a == x || blocks_.first_like(a) != a) return; // inside a block; the first member stands for the others
  if (symmetry_ == RG_SYMMETRY_CLASSES) {
    if (simulates(x))
      for (const std::uint32_t b : others_[a]) out.emplace_back(blocks_.at_place_of(from, b), to);
    else if (blocks_.first_like(x) == a)
      out.emplace_back(blocks_.at_place_of(from, x), blocks_.at_place_of(to, a));
    return;
  }
  const auto append = [&](std::uint32_t q) { // what arrives at block q
    const std::uint32_t b = rotates() ? (q + blocks_.size() - x) % blocks_.size() : q ^ x;
    if (!simulates(b)) out.emplace_back(blocks_.at_place_of(from, b), blocks_.at_place_of(to, q));
  };
  append(0);
  if (second_[0] != 0) append(second_[0]);
}

// Returns which rank is to the first member what `rank` is to the second; with `back` the reverse.
std::uint32_t folded_ranks::renamed(std::uint32_t rank, std::uint32_t first, std::uint32_t second, bool back) const {
  const std::uint32_t x = blocks_.block_of(rank), a = blocks_.block_of(first), b = blocks_.block_of(second);
  const std::uint32_t n = blocks_.size();
  if (rotates()) return blocks_.at_place_of(rank, (x + (back ? b : n - b)) % n);
  if (symmetry_ == RG_SYMMETRY_XOR) return blocks_.at_place_of(rank, x ^ b);
  return blocks_.at_place_of(rank, x == a ? b : x == b ? a : x);
}

void folded_ranks::sent(std::uint64_t now, std::uint32_t from, std::uint32_t to, std::uint32_t lane,
                        std::uint64_t bytes) {
  const auto found = checks_.find(first_like(from));
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
  traffic& t = h.sums[{peer, lane}];
  t.messages += 1;
  t.bytes += bytes;
  t.lengths = mixed(t.lengths ^ bytes);
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

void folded_ranks::require_equal_sums(const pair_of_members& p) {
  const auto require = [&](const history& a, const history& b) {
    for (const auto& [peer_and_lane, x] : a.sums) {
      const auto found = b.sums.find(peer_and_lane);
      const traffic y = found == b.sums.end() ? traffic() : found->second;
      const std::uint64_t more = std::max(x.bytes, y.bytes) - std::min(x.bytes, y.bytes);
      if (x.messages == y.messages && more <= x.messages * longest_chunk) {
        rounded_ = rounded_ || x.lengths != y.lengths;
        continue;
      }
      const auto text = [on = peer_and_lane.second](const traffic& z, std::uint32_t to) {
        return fmt::format("{} messages of {} bytes to rank {} on lane {}", z.messages, z.bytes, to, on);
      };
      const std::uint32_t peer = peer_and_lane.first;
      const bool in_order = &a == &p.first;
      refuse(p, text(in_order ? x : y, peer), text(in_order ? y : x, renamed(peer, p.first.rank, p.second.rank, true)));
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

void folded_ranks::require_equal_members() {
  for (const auto& [number, p] : checks_) require_equal_sums(p);
  for (const auto& [number, p] : checks_)
    if (!rounded_) require_equal_times(p);
}

} // namespace regatta
