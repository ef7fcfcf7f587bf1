// SPDX-License-Identifier: Apache-2.0
#include "goal_recorder.hpp"

#include <algorithm>
#include <iterator>
#include <ostream>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ostream.h>

namespace regatta {

goal_recorder::rank_schedule& goal_recorder::of(std::uint32_t rank) {
  if (rank >= ranks_.size()) ranks_.resize(rank + 1);
  return ranks_[rank];
}

// Adds a node to the causes of later ones. Causes that a node waits for are over at the next instant.
void goal_recorder::note_end(rank_schedule& r, std::uint64_t at, std::uint32_t node) {
  if (r.used && at > r.newest) {
    r.causes.clear();
    r.used = false;
  }
  r.newest = at;
  r.causes.push_back(node);
}

std::uint32_t goal_recorder::begin(rank_schedule& r, std::uint64_t now, node n, std::uint32_t also) {
  for (; !r.running.empty() && r.running.top().first <= now; r.running.pop())
    note_end(r, r.running.top().first, r.running.top().second);
  const auto add = [&r](node x) {
    x.first = static_cast<std::uint32_t>(r.needs.size());
    r.needs.insert(r.needs.end(), r.causes.begin(), r.causes.end());
    x.waits = static_cast<std::uint32_t>(r.causes.size());
    r.nodes.push_back(x);
    return static_cast<std::uint32_t>(r.nodes.size() - 1);
  };
  // A server's answers to n workers wait for n messages: through one node, not n times n.
  constexpr std::size_t most_direct = 4;
  if (r.causes.size() > most_direct) r.causes.assign(1, add({.what = kind::calc}));
  r.used = true;
  const std::uint32_t added = add(n);
  if (also != rank_schedule::none && std::ranges::find(r.causes, also) == r.causes.end()) {
    r.needs.push_back(also);
    r.nodes.back().waits += 1;
  }
  return added;
}

void goal_recorder::compute(std::uint32_t rank, std::uint64_t now, std::uint64_t ns) {
  rank_schedule& r = of(rank);
  r.computed = begin(r, now, {.what = kind::calc, .size = ns}, r.computed);
  r.running.emplace(now + ns, r.computed);
}

void goal_recorder::work(std::uint32_t rank, std::uint64_t now, std::uint64_t ns, std::uint64_t end) {
  if (end == now) return; // its causes are those of what waits for it
  rank_schedule& r = of(rank);
  const bool waits = end - ns > now;
  r.worked = begin(r, now, {.what = kind::calc, .size = ns}, waits ? r.worked : rank_schedule::none);
  r.running.emplace(end, r.worked);
}

void goal_recorder::send(std::uint32_t rank, std::uint64_t now, std::uint64_t cookie, std::uint32_t to,
                         std::uint32_t lane, std::uint64_t bytes) {
  rank_schedule& r = of(rank);
  const std::uint32_t number = r.sent[{to, lane}]++;
  r.open[cookie] = begin(r, now, {.what = kind::send, .peer = to, .lane = lane, .number = number, .size = bytes});
}

void goal_recorder::receive(std::uint32_t rank, std::uint64_t now, std::uint64_t cookie, std::uint32_t from,
                            std::uint32_t lane, std::uint64_t bytes) {
  rank_schedule& r = of(rank);
  const std::uint32_t number = r.posted[{from, lane}]++;
  r.open[cookie] = begin(r, now, {.what = kind::receive, .peer = from, .lane = lane, .number = number, .size = bytes});
}

void goal_recorder::ended(std::uint32_t rank, std::uint64_t now, std::uint64_t cookie, std::uint64_t bytes) {
  rank_schedule& r = of(rank);
  const auto found = r.open.find(cookie);
  if (found == r.open.end()) return;
  const std::uint32_t number = found->second;
  r.open.erase(found);
  for (; !r.running.empty() && r.running.top().first <= now; r.running.pop())
    note_end(r, r.running.top().first, r.running.top().second);
  note_end(r, now, number);
  node& n = r.nodes[number];
  n.ended = true;
  if (n.what != kind::receive) return;
  n.size = bytes;
  received_[{n.peer, {rank, n.lane}}] += 1;
}

bool goal_recorder::arrived(std::uint32_t from, std::uint32_t to, const node& n) const {
  const auto found = received_.find({from, {to, n.lane}});
  return found != received_.end() && n.number < found->second;
}

void goal_recorder::write_rank(std::ostream& out, std::uint32_t rank, std::uint32_t lanes) const {
  static const rank_schedule idle;
  const rank_schedule& r = rank < ranks_.size() ? ranks_[rank] : idle;
  fmt::memory_buffer text;
  const auto to = std::back_inserter(text);
  fmt::format_to(to, "\nrank {} {{\n", rank);
  for (std::size_t i = 0; i < r.nodes.size(); ++i) {
    const node& n = r.nodes[i];
    if (n.what == kind::receive && !n.ended) continue; // nothing waits for it
    const bool message = n.what == kind::receive || (n.what == kind::send && arrived(rank, n.peer, n));
    if (!message)
      fmt::format_to(to, "l{}: calc {}\n", i + 1, n.what == kind::calc ? n.size : 0);
    else // LogGOPSim computes with the bytes minus 1
      fmt::format_to(to, "l{}: {} {}b {} {} tag {}\n", i + 1, n.what == kind::send ? "send" : "recv",
                     std::max<std::uint64_t>(n.size, 1), n.what == kind::send ? "to" : "from", n.peer,
                     std::uint64_t{n.number} * lanes + n.lane);
    for (std::uint32_t w = 0; w < n.waits; ++w)
      fmt::format_to(to, "l{} requires l{}\n", i + 1, r.needs[n.first + w] + 1);
  }
  fmt::format_to(to, "}}\n");
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
}

void goal_recorder::write(std::ostream& out, std::uint32_t ranks, const std::string& heading) const {
  std::istringstream lines(heading);
  for (std::string line; std::getline(lines, line);) out << "// " << line << '\n';
  fmt::print(out, "num_ranks {}\n", ranks);
  std::uint32_t lanes = 1;
  for (const rank_schedule& r : ranks_)
    for (const node& n : r.nodes) lanes = std::max(lanes, n.lane + 1);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) write_rank(out, rank, lanes);
}

} // namespace regatta
