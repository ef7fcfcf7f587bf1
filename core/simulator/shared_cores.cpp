// SPDX-License-Identifier: Apache-2.0
#include "shared_cores.hpp"

#include <algorithm>
#include <cmath>

namespace regatta {

shared_cores::shared_cores(const cores_options& options)
    : options_(options), ranks_(options.group_of.size()), members_(options.groups.size()) {
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) members_[options.group_of[r]].push_back(r);
  for (std::size_t g = 0; g < members_.size(); ++g) { // more cores than ranks are never busy
    const double cores = std::min(std::floor(options.groups[g].cores), static_cast<double>(members_[g].size()));
    cores_until_.emplace_back(static_cast<std::size_t>(std::max(1.0, cores)));
  }
}

std::uint64_t shared_cores::begin(std::uint32_t rank, std::uint64_t earliest, std::uint64_t ns) {
  const std::uint32_t group = options_.group_of[rank];
  std::vector<std::uint64_t>& cores = cores_until_[group];
  if (!ns || options_.groups[group].threads > 0 || members_[group].size() <= cores.size()) return earliest;
  // Of the cores that are idle at `earliest` the one that became idle last: the others keep their longer idle time for
  // work that is submitted later but may begin before `earliest`. If none is idle, the one that becomes idle first.
  auto core = std::ranges::min_element(cores);
  for (auto c = cores.begin(); c != cores.end(); ++c)
    if (*c <= earliest && *c > *core) core = c;
  const std::uint64_t from = std::max(earliest, *core);
  *core = from + ns;
  return from;
}

// Returns the part of a ns that computing loses for each ns of work: 0 if a core is idle.
double shared_cores::share(std::uint32_t group, std::uint64_t now, work_kind kind) const {
  const core_group& g = options_.groups[group];
  const auto computing = std::ranges::count_if(members_[group], [&](std::uint32_t r) { return ranks_[r].end > now; });
  if (g.cores - static_cast<double>(computing) * g.threads >= 1) return 0;
  return (kind == operation ? 1 : options_.loss) / g.cores;
}

// Delays the end of computing by work that is over, and by work that goes on from now without a pause.
void shared_cores::lose(member& r, std::uint64_t now, double past, double coming, double share) {
  double more = coming * share;
  if (share < 1) more = std::min(more, static_cast<double>(r.end - now) * share / (1 - share));
  const auto ns = static_cast<std::uint64_t>(std::llround(past * share + more));
  r.end += ns;
  r.lost += ns;
}

void shared_cores::compute(std::uint32_t rank, std::uint64_t now, std::uint64_t ns) {
  member& r = ranks_[rank];
  if (r.end != now) r.begin = now;
  r.end = now + ns;
  const std::uint32_t group = options_.group_of[rank];
  for (const work_kind kind : {send, receive, operation}) {
    double coming = 0;
    for (const std::uint32_t m : members_[group])
      coming += static_cast<double>(std::max(ranks_[m].works_until[kind], now) - now);
    if (coming > 0 && ns) lose(r, now, 0, coming, share(group, now, kind));
  }
}

void shared_cores::work(std::uint32_t rank, work_kind kind, std::uint64_t now, std::uint64_t ns, std::uint64_t end) {
  const std::uint32_t group = options_.group_of[rank];
  std::uint64_t& until = ranks_[rank].works_until[kind];
  until = std::max(until, end);
  if (!ns) return;
  const double part = share(group, now, kind);
  const std::uint64_t begin = end - ns;
  for (const std::uint32_t m : members_[group]) {
    member& r = ranks_[m];
    if (r.end <= now) continue;
    const std::uint64_t over = std::min(end, now), from = std::min(std::max(begin, r.begin), over);
    lose(r, now, static_cast<double>(over - from), static_cast<double>(end - std::min(std::max(begin, now), end)),
         part);
  }
}

} // namespace regatta
